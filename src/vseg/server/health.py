"""Whether the server works, for whatever watches over it: no login, and nothing of anybody's."""

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vseg import store
from vseg.errors import VsegError

PATIENCE_S = 10


async def health(request: Request) -> Response:
    """200 while the database answers, 503 where it does not, or not soon."""
    try:
        with anyio.fail_after(PATIENCE_S):
            await anyio.to_thread.run_sync(store.health.check, request.app.state.db, abandon_on_cancel=True)
    except (VsegError, TimeoutError):
        return _said("unavailable", 503)
    return _said("ok", 200)


def _said(status: str, code: int) -> Response:
    return JSONResponse({"status": status}, code, headers={"Cache-Control": "no-store"})
