
"use strict";
const { budget, prompts, units } = JSON.parse(document.getElementById("drawn").textContent);
const chart = document.getElementById("budget"), timeline = document.getElementById("timeline");
const note = document.getElementById("note");
const SVG = timeline.namespaceURI;
const calls = prompts.lre.length;
const WHY = {
  "pinned": "pinned: always in view", "recent": "recent: among the newest units", "fits": "fits: nothing had to go",
  "opens": "opens: a person’s words that what follows needs", "tenured": "tenured: kept at an earlier eviction",
  "scored in": "scored in: worth its tokens", "scored out": "scored out: others were worth more a token", "too large": "too large for the room left",
  "left earlier": "left earlier", "invalid": "invalid: a provider would refuse it", "not sent yet": "not sent yet",
};
const POLICIES = [["everything", "everything"], ["recency", "recency"], ["lre", "LRE"]];
const peak = prompts.everything.reduce((most, tokens) => Math.max(most, tokens), Math.max(1, budget));
const ROW = units.length > 600 ? 4 : units.length > 150 ? 8 : 16;
const TOP = 22, PLOT = 190;
const count = (number) => number.toLocaleString("en");
const nameOf = (unit) => (unit.role === "step" ? unit.what.replace(/^step: /, "") : unit.text) || unit.what;
// Letters of East Asia are about twice as wide.
const widthOf = (text) => text.length + (text.match(/[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uff60]/g) || []).length;
const messagesOf = (unit) => unit.start + (unit.stop - 1 > unit.start ? "–" + (unit.stop - 1) : "");
// What both drawings share, so that a call stands at the same place in either; measured again when the window changes.
let width, left, right, column, wide;
let at = -1, call = -1;

function add(parent, tag, attributes, text) {
  const svg = parent.namespaceURI === SVG;
  const node = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function measure() {
  width = Math.max(timeline.parentElement.clientWidth - 28, 240);
  wide = width > 560;
  const longest = ROW > 12 ? Math.max(0, ...units.map((unit) => widthOf(nameOf(unit)))) : 0;
  const figures = Math.max((wide ? 7 : 0) + count(budget).length, count(peak).length);
  left = Math.max(12 + 7 * figures, wide ? Math.min(190, 56 + 7 * longest) : 0);
  right = width - (wide ? 110 : 72);
  column = (right - left) / Math.max(calls, 1);
}

const x = (number) => left + number * column;

function nice(most, total) {
  const least = Math.max(1, total / most), power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least && step >= 1);
}

function blank(svg, height) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  svg.setAttribute("height", height);
  const step = nice(wide ? 9 : 4, calls);
  const ticks = [...new Set([1, ...Array.from({ length: Math.floor(calls / step) }, (_, k) => (k + 1) * step)])];
  for (const tick of calls ? ticks : []) {
    if (tick > 1 && step > 1) add(svg, "line", { class: "grid", x1: x(tick - 0.5), x2: x(tick - 0.5), y1: TOP - 4, y2: height });
    if (tick === 1) add(svg, "text", { x: left, y: 12 }, "call 1");
    else if (tick * column > 50) add(svg, "text", { x: x(tick - 0.5), y: 12, "text-anchor": "middle" }, count(tick));
  }
}

function drawBudget() {
  blank(chart, TOP + PLOT + 10);
  const y = (tokens) => TOP + PLOT * (1 - tokens / peak);
  const path = (tokens) => tokens.map((value, number) =>
    "L" + x(number).toFixed(1) + " " + y(value).toFixed(1) + "H" + x(number + 1).toFixed(1)).join("").replace(/^L/, "M");
  if (calls) {
    add(chart, "path", { class: "everything-area", d: path(prompts.everything) + "V" + y(0) + "H" + left + "Z" });
    add(chart, "path", { class: "recency-line", d: path(prompts.recency) });
    add(chart, "path", { class: "lre-line", d: path(prompts.lre) });
  }
  add(chart, "line", { class: "budget-line", x1: left, x2: right, y1: y(budget), y2: y(budget) });
  add(chart, "text", { class: "over", x: left - 8, y: y(budget) + 4, "text-anchor": "end" },
    (wide ? "budget " : "") + count(budget));
  if (y(peak) + 14 < y(budget)) add(chart, "text", { x: left - 8, y: y(peak) + 4, "text-anchor": "end" }, count(peak));
  if (y(budget) + 14 < y(0)) add(chart, "text", { x: left - 8, y: y(0) + 4, "text-anchor": "end" }, "0");
  const labels = POLICIES.map(([policy, name]) => ({ policy, name, y: y(prompts[policy][calls - 1] ?? 0) }));
  labels.sort((a, b) => a.y - b.y);
  // Names stand beside where their lines end, apart enough to be read.
  for (let k = labels.length - 1, lowest = y(0) + 2; k >= 0; k--) lowest = (labels[k].y = Math.min(labels[k].y, lowest)) - 14;
  for (const label of labels) add(chart, "text", { class: label.policy + "-name", x: right + 8, y: label.y + 4 }, label.name);
  add(chart, "line", { class: "cross", y1: TOP - 4, y2: y(0), visibility: "hidden" });
}

function drawTimeline() {
  blank(timeline, TOP + units.length * ROW + 4);
  timeline.classList.toggle("dense", ROW < 8);
  const from = right + 10, full = width - from;
  add(timeline, "text", { x: width, y: 12, "text-anchor": "end" }, "score");
  const thin = ROW > 4 ? 2 : 0;
  const every = ROW > 12 ? 1 : nice(1, Math.ceil(30 / ROW));
  const fits = Math.floor((left - 50) / 7);
  units.forEach((unit, number) => {
    const y = TOP + number * ROW, height = ROW - thin;
    const row = add(timeline, "g", { class: "row", "data-unit": number });
    const bar = (name, start, stop) => add(row, "rect", { class: name, x: x(start).toFixed(2), y,
      width: Math.max((stop - start) * column - (column > 6 ? 0.8 : 0), 0.8).toFixed(2), height, rx: ROW > 8 ? 2 : 0 });
    if (number % every === 0) {
      const gutter = ROW > 12 && wide ? 36 : left - 8;
      add(row, "text", { x: gutter, y: y + height / 2 + 4, "text-anchor": "end" }, unit.start);
      if (ROW > 12 && wide) add(row, "text", { class: "name", x: 46, y: y + height / 2 + 4 },
        shortened(nameOf(unit), fits));
    }
    if (unit.born < calls) bar("gone", unit.born, calls);
    for (const [start, stop] of unit.seen) bar(unit.role, start, stop);
    const radius = Math.min(4, ROW / 2 - 1.5);
    for (const needed of unit.needed) {
      const held = unit.seen.some(([start, stop]) => start <= needed && needed < stop);
      add(row, "circle", { class: held ? "held" : "missed", cx: x(needed + 0.5).toFixed(2), cy: y + height / 2, r: Math.max(radius, 1.5) });
    }
    add(row, "rect", { class: "track", x: from, y, width: full, height });
    if (unit.score !== null) add(row, "rect", { class: "score", x: from, y, width: Math.max(unit.score * full, 1).toFixed(2), height });
    add(row, "rect", { class: "hit", x: 0, y: y - thin / 2, width, height: ROW });
  });
  add(timeline, "line", { class: "cross", y1: TOP - 4, y2: TOP + units.length * ROW, visibility: "hidden" });
}

function shortened(text, fits) {
  if (widthOf(text) <= fits) return text;
  let end = Math.min(fits - 1, text.length);
  while (widthOf(text.slice(0, end)) > fits - 1) end--;
  return text.slice(0, end).trimEnd() + "…";
}

function ranges(unit) {
  if (!unit.seen.length) return unit.born < calls ? "Never in view" : "After the last call";
  return "In view at call " + unit.seen.map(([from, to]) => (to - from === 1 ? from + 1 : (from + 1) + "–" + to)).join(", ");
}

function tell() {
  const unit = units[at];
  note.hidden = false;
  note.replaceChildren();
  add(note, "b", {}, unit.what + " · message " + messagesOf(unit));
  note.append(" · " + count(unit.tokens) + " tokens · score " + (unit.score === null ? "–" : unit.score.toFixed(3)) + " · ");
  add(note, "span", { class: unit.left === null ? "in" : "out" },
    (unit.left === null ? "in view, " : "left at call " + (unit.left + 1) + ", ") + (WHY[unit.why] || unit.why));
  const needed = unit.needed.length ? "; what came after call " + unit.needed.map((number) => number + 1).join(", ") + " needed it" : "";
  add(note, "p", {}, ranges(unit) + needed + ".");
  if (unit.drivers.length) {
    const drivers = add(note, "p", { class: "drivers" }, "Score at the end driven by ");
    for (const [name, added] of unit.drivers) add(drivers, "code", {}, name + " " + (added > 0 ? "+" : "−") + Math.abs(added).toFixed(2));
  }
  add(note, "p", { class: "text" }, unit.text);
  if (call >= 0) add(note, "p", { class: "call" }, atCall());
}

function show(number, scroll) {
  if (!units.length) return;
  timeline.querySelector(".on")?.setAttribute("class", "row");
  at = Math.min(Math.max(number, 0), units.length - 1);
  const marked = timeline.querySelector("[data-unit='" + at + "']");
  marked.setAttribute("class", "row on");
  tell();
  if (scroll) marked.scrollIntoView({ block: "center" });
}

function cross(number) {
  if (!calls) return;
  call = Math.min(Math.max(number, 0), calls - 1);
  for (const line of document.querySelectorAll(".cross")) {
    line.setAttribute("x1", x(call + 0.5));
    line.setAttribute("x2", x(call + 0.5));
    line.removeAttribute("visibility");
  }
  document.getElementById("at").textContent = atCall();
  if (!note.hidden) tell();
}

function atCall() {
  const inView = units.filter((unit) => unit.seen.some(([from, to]) => from <= call && call < to)).length;
  return "Call " + (call + 1) + ": everything " + count(prompts.everything[call]) +
    ", recency " + count(prompts.recency[call]) + ", LRE " + count(prompts.lre[call]) + " tokens; " + count(inView) + " units in view.";
}

function point(event) {
  const place = (event.clientX - timeline.getBoundingClientRect().left - left) / column;
  if (place >= 0 && place < calls) cross(Math.floor(place));
  const row = event.target.closest("[data-unit]");
  if (row) show(Number(row.dataset.unit), false);
}

for (const svg of [chart, timeline]) for (const kind of ["pointermove", "click"]) svg.addEventListener(kind, point);
timeline.addEventListener("focus", () => at < 0 && timeline.matches(":focus-visible") && show(0, false));
timeline.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -units.length, End: units.length }[event.key];
  const aside = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) show(at + step, true);
  if (aside) cross(call + aside);
  if (step || aside) event.preventDefault();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") note.hidden = true; });

function draw() {
  measure();
  drawBudget();
  drawTimeline();
  if (call >= 0) cross(call);
  if (at >= 0) timeline.querySelector("[data-unit='" + at + "']").setAttribute("class", "row on");
}
draw();
window.addEventListener("resize", () => { if (timeline.parentElement.clientWidth - 28 !== width) draw(); });
