"""Work that goes on beside the requests, for as long as the server runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Work while the block lasts; it is given what says that all is over, and what is under way comes to its end.

    Cancelled, it would leave a thread behind that goes on with a database that is being closed. If it takes longer than
    a stop may (run.py), it is cut off with the process.
    """
    over = asyncio.Event()
    task = asyncio.create_task(work(over))
    try:
        yield
    finally:
        over.set()
        await task


async def is_over(over: asyncio.Event, within_s: float) -> bool:
    """Wait so long at most; whether all is over by then."""
    try:
        await asyncio.wait_for(over.wait(), within_s)
    except TimeoutError:
        return False
    return True
