"""Background tasks that run for as long as the server does."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def run_in_background(
    work: Callable[[asyncio.Event], Coroutine[None, None, None]],
) -> AsyncIterator[None]:
    """Run `work` while the block lasts; on exit set its stop event and await it.

    The task is awaited rather than cancelled: a cancelled task would leave its thread using a database that is being
    closed. If it takes longer than the server may take to stop (see runner.py), it ends with the process.
    """
    stop = asyncio.Event()
    task = asyncio.create_task(work(stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def wait_for_stop(stop: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the stop event, at most `timeout_s`; return whether it was set."""
    try:
        await asyncio.wait_for(stop.wait(), timeout_s)
    except TimeoutError:
        return False
    return True
