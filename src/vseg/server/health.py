"""GET /health, for monitoring: it needs no login and says nothing about the data."""

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vseg.errors import VsegError

TIMEOUT_S = 10


async def health(request: Request) -> Response:
    """Return 200 if the database answers within `TIMEOUT_S`, else 503."""
    try:
        with anyio.fail_after(TIMEOUT_S):
            await anyio.to_thread.run_sync(request.app.state.db.check_health, abandon_on_cancel=True)
    except (VsegError, TimeoutError):
        return _status_response("unavailable", 503)
    return _status_response("ok", 200)


def _status_response(status: str, code: int) -> Response:
    return JSONResponse({"status": status}, code, headers={"Cache-Control": "no-store"})
