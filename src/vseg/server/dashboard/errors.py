"""Whatever goes wrong, as a page for browsers in which people read; scripts get JSON as everywhere."""

from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vseg.errors import VsegError
from vseg.server import auth, wire
from vseg.server.dashboard.visiting import known
from vseg.server.html import page_of, root_of

HEADINGS = {
    401: "Please log in",
    403: "This form did not come through",
    404: "There is nothing here",
    405: "There is nothing here",
    409: "Not possible right now",
    422: "This did not work",
    429: "Please wait a moment",
    500: "Something went wrong",
    503: "The server is busy",
}


def _for_people(handler: wire.Handler) -> wire.Handler:
    async def answered(request: Request, exception: Exception) -> Response:
        answer = await handler(request, exception)
        if "text/html" not in request.headers.get("accept", ""):
            return answer
        status = answer.status_code
        heading = HEADINGS.get(status, HTTPStatus(status).phrase)
        menu = {} if status >= 500 else await _menu(request)
        page = page_of(
            request, "problem.html", status=status, heading=heading, said=_said(exception, status), **menu
        )
        if (wait := answer.headers.get("retry-after")) is not None:
            page.headers["Retry-After"] = wait
        return page

    return answered


async def _menu(request: Request) -> dict[str, Any]:
    """What the menu needs, for whoever is logged in; nothing for others, who get no cookie by a mistyped address."""
    try:
        return await known(request) if auth.COOKIE in request.cookies else {}
    except VsegError:  # the database cannot be asked: the page says what it has to without
        return {}


def _said(exception: Exception, status: int) -> str:
    if isinstance(exception, VsegError):
        return wire.said_of(exception)
    if status in (404, 405):
        return "No page of this server has that address. It may have been mistyped, or what it showed was erased."
    if isinstance(exception, HTTPException) and exception.detail != HTTPStatus(status).phrase:
        return exception.detail
    return "It has been written to the server's log. Go back and try again."


HANDLERS: dict[int | type[Exception], wire.Handler] = {
    kind: _for_people(handler) for kind, handler in wire.HANDLERS.items()
}


async def favicon(request: Request) -> Response:
    """Where browsers look for the icon by themselves."""
    return RedirectResponse(f"{root_of(request)}/pages/favicon.svg", 301)
