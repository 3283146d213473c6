"""Sessions that this process does not know yet, looked up many at a time: after a restart everyone comes at once.

The mirror of the writer's group commit: while one query is under way those who come meanwhile gather for the next.
"""

import asyncio

from vseg import store
from vseg.server.known import Known
from vseg.server.wire import in_thread
from vseg.store.studies import StudyRow

AT_ONCE = 20  # so that the first of a thousand need not wait for the last


class Recall:
    """Looks up sessions by token, for one event loop."""

    def __init__(self, db: store.Database):
        self._db = db
        self._studies: dict[int, StudyRow] = {}  # one with sessions is frozen
        self._wanted: dict[str, asyncio.Future[Known | None]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def of(self, token: str) -> Known | None:
        """The session of a token; None if there is none."""
        if token not in self._wanted:
            self._wanted[token] = asyncio.get_running_loop().create_future()
        found = self._wanted[token]
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(found)  # others may wait for the same

    async def _ask(self) -> None:
        while self._wanted:
            asked = {token: self._wanted.pop(token) for token in list(self._wanted)[:AT_ONCE]}
            try:
                known = await in_thread(self._known, list(asked))
                for token, each in asked.items():
                    each.set_result(known.get(token))
            except Exception as error:
                for each in asked.values():
                    each.set_exception(error)
            finally:
                for each in asked.values():
                    each.cancel()  # unless it is done: the server stops

    def _known(self, tokens: list[str]) -> dict[str, Known]:
        asked = store.sessions.asked(self._db, tokens)
        if new := {each.study for each in asked.values()} - self._studies.keys():
            self._studies |= store.studies.numbered(self._db, new)
        return {token: Known.of(self._studies[each.study], each) for token, each in asked.items()}
