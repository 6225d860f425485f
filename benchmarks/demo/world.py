"""The world the agent works in: one household's accounts, kept in SQLite, behind a sign-in token."""

import sqlite3
from collections.abc import Mapping
from random import Random
from threading import Lock
from types import TracebackType
from typing import Any, Self

from langchain_core.tools import ToolException

from benchmarks.demo import population

Json = dict[str, Any]

TOKEN_LIFETIME = 60
"""Minutes a token stays valid. Every tool call takes one minute of the world's own clock."""

TOKEN_ERRORS = frozenset({"missing_token", "invalid_token", "expired_token"})

SCHEMA = """
CREATE TABLE account (email, password, name, phone, language, member_since, pending_phone, phone_code);
CREATE TABLE sessions (token PRIMARY KEY, opened);
CREATE TABLE activity (minute, entry);
CREATE TABLE addresses (address_id PRIMARY KEY, label UNIQUE, street, postcode, city, access_notes, is_default);
CREATE TABLE payment_methods (payment_method_id PRIMARY KEY, label UNIQUE, kind, holder, expires, is_default);
CREATE TABLE products (sku PRIMARY KEY, name UNIQUE, category, cents, stock, description);
CREATE TABLE orders (order_id PRIMARY KEY, item, sku, quantity, day, status, cents, address_id, payment_method_id,
                     gift_note, cancel_reason, carrier, tracking_number);
CREATE TABLE returns (return_id PRIMARY KEY, order_id UNIQUE, reason, status, pickup_address_id);
CREATE TABLE transactions (charge_id PRIMARY KEY, merchant, day, cents, label, status);
CREATE TABLE invoices (invoice_number PRIMARY KEY, vendor UNIQUE, cents, due, status, paid_with);
CREATE TABLE gift_cards (code PRIMARY KEY, sender UNIQUE, cents, status);
CREATE TABLE mails (mail_id PRIMARY KEY, folder, sender, recipient, day, subject, body);
CREATE TABLE unsubscribed (sender PRIMARY KEY);
"""


class Refused(ToolException):
    """A service said no: the agent sees it as an error result.

    Args:
        code: What went wrong, for programs, such as `expired_token`.
        message: What went wrong and what to do, for readers.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class World:
    """The state behind the six services, the same for the same seed.

    Nothing reads the computer's clock: `minute` advances by one with every tool call. Use it as a context manager;
    leaving it closes the database.

    Args:
        seed: Decides the household, its orders and mails, and every identifier issued later.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.minute = 0
        self.lock = Lock()
        # LangGraph runs tools in worker threads; `lock` lets one call in at a time.
        self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.executescript(SCHEMA)
        for table, rows in population.household(self.random).items():
            for row in rows:
                self.insert(table, row)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._db.close()

    def rows(self, sql: str, **values: object) -> list[Json]:
        """Run a query with named values and return its rows as dicts."""
        return [dict(row) for row in self._db.execute(sql, values)]

    def row(self, missing: str, sql: str, **values: object) -> Json:
        """Run a query and return its first row.

        Raises:
            Refused: `not_found`, with the text `missing`, when there is no row.
        """
        found = self.rows(sql, **values)
        if not found:
            raise Refused("not_found", missing)
        return found[0]

    def change(self, sql: str, **values: object) -> None:
        """Run a statement that changes the world."""
        self._db.execute(sql, values)

    def insert(self, table: str, row: Mapping[str, object]) -> None:
        """Add one row; columns that `row` leaves out are null."""
        columns = ", ".join(row)
        self.change(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(f':{name}' for name in row)})", **row)

    @property
    def changes(self) -> int:
        """Rows changed so far; a call that leaves this number as it was has changed nothing."""
        return self._db.total_changes

    def issue(self, prefix: str, length: int, alphabet: str = population.READABLE) -> str:
        """Make a new identifier nobody could guess."""
        return prefix + "".join(self.random.choices(alphabet, k=length))

    def require(self, token: str) -> None:
        """Let the call pass only with a valid token.

        Raises:
            Refused: The token is missing, unknown or older than `TOKEN_LIFETIME` minutes.
        """
        if not token:
            raise Refused("missing_token", "This call needs the token that sign_in returns.")
        opened = self.rows("SELECT opened FROM sessions WHERE token = :token", token=token)
        if not opened:
            raise Refused("invalid_token", "This token is not known here. Sign in again.")
        if self.minute - opened[0]["opened"] >= TOKEN_LIFETIME:
            raise Refused("expired_token", f"This token is older than {TOKEN_LIFETIME} minutes. Sign in again.")
