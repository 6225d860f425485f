
"use strict";
const { budget, prompts, units } = JSON.parse(document.getElementById("drawn").textContent);
const SVG = document.getElementById("timeline").namespaceURI;
const NARROW = window.innerWidth < 560;
const WIDTH = NARROW ? 340 : 640, SCORE = NARROW ? 44 : 60, GAP = 8, TOP = 16;
const calls = prompts.lre.length;
const ROW = units.length > 600 ? 3 : units.length > 150 ? 6 : 11;
const chart = WIDTH - SCORE - GAP;
const column = chart / Math.max(calls, 1);
const WHY = {
  "pinned": "pinned: always in view", "recent": "recent: among the newest units", "fits": "fits: nothing had to go",
  "opens": "opens: a person’s words that what follows needs", "tenured": "tenured: kept at an earlier eviction",
  "scored in": "scored in", "scored out": "scored out: others were worth more a token", "too large": "too large for the room left",
  "left earlier": "left earlier", "invalid": "invalid: a provider would refuse it", "not sent yet": "not sent yet",
};
const note = document.getElementById("note");
const count = (number) => number.toLocaleString("en");

function add(parent, tag, attributes, text) {
  const svg = parent.namespaceURI === SVG;
  const node = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function drawBudget(svg) {
  const height = 150, left = 44;
  svg.setAttribute("viewBox", "0 0 " + WIDTH + " " + (height + 20));
  const peak = Math.max(1, budget, ...prompts.everything);
  const x = (call) => left + ((WIDTH - left) * call) / Math.max(calls, 1);
  const y = (tokens) => 8 + (height - 8) * (1 - tokens / peak);
  const path = (tokens) => tokens.map((value, call) =>
    "L" + x(call).toFixed(1) + " " + y(value).toFixed(1) + "H" + x(call + 1).toFixed(1)).join("").replace(/^L/, "M");
  const base = "V" + y(0) + "H" + left + "Z";
  if (calls) {
    add(svg, "path", { class: "everything-area", d: path(prompts.everything) + base });
    add(svg, "path", { class: "recency-line", d: path(prompts.recency) });
    add(svg, "path", { class: "lre-line", d: path(prompts.lre) });
  }
  add(svg, "line", { class: "budget-line", x1: left, x2: WIDTH, y1: y(budget), y2: y(budget) });
  add(svg, "text", { x: left - 5, y: y(budget) + 3, "text-anchor": "end" }, count(budget));
  if (y(peak) + 12 < y(budget)) add(svg, "text", { x: left - 5, y: y(peak) + 3, "text-anchor": "end" }, count(peak));
  add(svg, "text", { x: left - 5, y: y(0) + 3, "text-anchor": "end" }, "0");
  add(svg, "text", { x: left, y: height + 16 }, "first call");
  add(svg, "text", { x: WIDTH, y: height + 16, "text-anchor": "end" }, "call " + count(calls));
}

function drawTimeline(svg) {
  svg.setAttribute("viewBox", "0 0 " + WIDTH + " " + (TOP + units.length * ROW));
  add(svg, "text", { x: 0, y: 9 }, "call 1");
  add(svg, "text", { x: chart, y: 9, "text-anchor": "end" }, count(calls));
  add(svg, "text", { x: WIDTH, y: 9, "text-anchor": "end" }, "score");
  const thin = ROW > 4 ? 1.2 : 0.4;
  units.forEach((unit, number) => {
    const y = TOP + number * ROW;
    const row = add(svg, "g", { class: "row", "data-unit": number });
    const bar = (name, from, to) => add(row, "rect", { class: name, x: (from * column).toFixed(2), y,
      width: Math.max((to - from) * column, 0.8).toFixed(2), height: ROW - thin, rx: ROW > 4 ? 1 : 0 });
    if (unit.born < calls) bar("gone", unit.born, calls);
    for (const [from, to] of unit.seen) bar(unit.role, from, to);
    if (unit.score !== null) add(row, "rect", { class: "score", x: WIDTH - SCORE, y,
      width: Math.max(unit.score * SCORE, 0.5).toFixed(2), height: ROW - thin });
    add(row, "rect", { class: "hit", x: 0, y: y - thin / 2, width: WIDTH, height: ROW });
  });
}

function ranges(unit) {
  if (!unit.seen.length) return unit.born < calls ? "never in view" : "after the last call";
  return "in view at call " + unit.seen.map(([from, to]) => (to - from === 1 ? from + 1 : (from + 1) + "–" + to)).join(", ");
}

function tell(number) {
  const unit = units[number];
  note.hidden = false;
  note.replaceChildren();
  const last = unit.stop - 1;
  add(note, "b", {}, unit.what + " · message " + unit.start + (last > unit.start ? "–" + last : ""));
  note.append(" · " + count(unit.tokens) + " tokens · ");
  add(note, "span", { class: unit.left === null ? "in" : "out" },
    (unit.left === null ? "in view, " : "left at call " + (unit.left + 1) + ", ") + (WHY[unit.why] || unit.why));
  note.append(" · score " + (unit.score === null ? "–" : unit.score.toFixed(3)));
  const drivers = unit.drivers.map(([name, added]) => name + " " + (added > 0 ? "+" : "−") + Math.abs(added)).join(", ");
  add(note, "p", {}, ranges(unit) + (drivers ? ". What drives its score at the end: " + drivers : ""));
  add(note, "p", { class: "text" }, unit.text);
}

function walk(svg) {
  let at = -1, marked = null;
  function show(number, scroll) {
    if (!units.length) return;
    marked?.setAttribute("class", "row");
    at = Math.min(Math.max(number, 0), units.length - 1);
    marked = svg.querySelector("[data-unit='" + at + "']");
    marked.setAttribute("class", "row on");
    tell(at);
    if (scroll) marked.scrollIntoView({ block: "center" });
  }
  const pick = (event) => {
    const row = event.target.closest("[data-unit]");
    if (row) show(Number(row.dataset.unit), false);
  };
  svg.addEventListener("pointermove", pick);
  svg.addEventListener("click", pick);
  svg.addEventListener("focus", () => at < 0 && svg.matches(":focus-visible") && show(0, false));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -units.length, End: units.length }[event.key];
    if (step) { event.preventDefault(); show(at + step, true); }
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") note.hidden = true; });
}

const timeline = document.getElementById("timeline");
drawBudget(document.getElementById("budget"));
drawTimeline(timeline);
walk(timeline);
