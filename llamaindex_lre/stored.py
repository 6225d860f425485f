"""The messages of a `Memory`'s session as read from its store: each is read once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy import BindParameter, Row, Select, Table, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = ["StoredMessages"]


class Known(NamedTuple):
    """What has been read of a session.

    Attributes:
        store: that it was read from.
        session_id: whose messages these are.
        messages: all of them, in the store's order: by time, then by id.
        newest: id and time of the row that was added last.
        end: time and id of the row that comes last.
    """

    store: AsyncDBChatStore
    session_id: str
    messages: list[ChatMessage]
    newest: tuple[int, int]
    end: tuple[int, int]


class StoredMessages:
    """A session's messages, archived or not. Safe to use from several threads and loops.

    The table is asked for the rows since the newest one known, and how many there are in all. Rows that others remove,
    replace, or add among the older ones show in one of the two; then all are read anew. A row whose text is rewritten
    in place does not show. Another kind of store than LlamaIndex's SQL table is read whole every time: its interface
    has nothing that would tell cheaply.

    A copy starts with nothing read.
    """

    def __init__(self) -> None:
        self._known: Known | None = None
        self._query: tuple[Table, Select[Any]] | None = None

    def __reduce__(self) -> tuple[Callable[[], StoredMessages], tuple[()]]:
        return StoredMessages, ()

    def forget(self) -> None:
        """Reads all anew the next time."""
        self._known = None

    async def read(self, store: AsyncDBChatStore, session_id: str) -> list[ChatMessage]:
        """All messages of the session, oldest first; those that were there before are the same objects."""
        if (
            not isinstance(store, SQLAlchemyChatStore)
            or type(store).get_messages is not SQLAlchemyChatStore.get_messages
        ):
            return await store.get_messages(session_id, status=None)
        known = self._known
        if known is not None and known.store is store and known.session_id == session_id:
            known = _continued(known, await self._rows(store, session_id, known.newest[0]))
        else:
            known = None
        if known is None:
            known = _whole(store, session_id, await self._rows(store, session_id))
        self._known = known
        return [] if known is None else known.messages

    async def _rows(self, store: SQLAlchemyChatStore, session_id: str, since: int = 0) -> Sequence[Row[Any]]:
        """The rows with this id or a later one, in the store's order, each with how many rows there are in all."""
        # There is no public way to the table, nor to a connection; a session of the ORM costs a third more.
        _, table = await store._initialize()
        engine = cast(AsyncEngine, store._async_engine)
        if self._query is None or self._query[0] is not table:
            self._query = table, _query(table)
        async with engine.connect() as connection:
            rows = await connection.execute(self._query[1], {"session_id": session_id, "since": since})
            found: Sequence[Row[Any]] = rows.fetchall()
        return found


def _query(table: Table) -> Select[Any]:
    """Made once a table: making it takes as long as asking it."""
    column = table.c
    session_id: BindParameter[str] = bindparam("session_id")
    total = select(func.count()).where(column.key == session_id).scalar_subquery().label("total")
    return (
        select(column.id, column.timestamp, column.data, total)
        .where(column.key == session_id, column.id >= bindparam("since"))
        .order_by(column.timestamp, column.id)
    )


def _whole(store: AsyncDBChatStore, session_id: str, rows: Sequence[Row[Any]]) -> Known | None:
    """What is known once all rows are read; None where there are none."""
    if not rows:
        return None
    messages = [ChatMessage.model_validate(row.data) for row in rows]
    newest = max((row.id, row.timestamp) for row in rows)
    return Known(store, session_id, messages, newest, (rows[-1].timestamp, rows[-1].id))


def _continued(known: Known, rows: Sequence[Row[Any]]) -> Known | None:
    """What is known with the rows since the newest one; None where they do not simply follow what was there.

    While the newest row is there, ids only grow: SQLite gives one again when its row is gone, but then at another time.
    So with that row there and the count right, none was removed. A transaction that PostgreSQL commits late, with an
    id below, shows in the count.
    """
    new = [row for row in rows if (row.id, row.timestamp) != known.newest]
    if len(new) == len(rows) or rows[0].total != len(known.messages) + len(new):
        return None
    if not new:
        return known
    if (new[0].timestamp, new[0].id) < known.end:
        return None
    added = _whole(known.store, known.session_id, new)
    return added and added._replace(messages=[*known.messages, *added.messages])
