"""Whatever goes wrong, as a page for browsers in which people read; scripts get JSON as everywhere."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vseg.errors import VsegError
from vseg.server import http
from vseg.server.html import render_template

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

Menu = Callable[[Request], Awaitable[dict[str, Any]]]


async def no_menu(request: Request) -> dict[str, Any]:
    """Participants have none, and files neither."""
    return {}


def build_handlers(menu: Menu = no_menu) -> dict[int | type[Exception], http.Handler]:
    """What answers for each kind of error; `menu` is what the page's frame needs besides."""
    return {kind: _for_people(handler, menu) for kind, handler in http.HANDLERS.items()}


def _for_people(handler: http.Handler, menu: Menu) -> http.Handler:
    async def answered(request: Request, exception: Exception) -> Response:
        answer = await handler(request, exception)
        if "text/html" not in request.headers.get("accept", ""):
            return answer
        status = answer.status_code
        heading = HEADINGS.get(status, HTTPStatus(status).phrase)
        frame = {} if status >= 500 else await menu(request)
        page = render_template(
            request, "problem.html", status=status, heading=heading, said=_said(exception, status), **frame
        )
        if (wait := answer.headers.get("retry-after")) is not None:
            page.headers["Retry-After"] = wait
        return page

    return answered


def _said(exception: Exception, status: int) -> str:
    if isinstance(exception, VsegError):
        return http.get_public_message(exception)
    if status in (404, 405):
        return "No page of this server has that address. It may have been mistyped, or what it showed was erased."
    if isinstance(exception, HTTPException) and exception.detail != HTTPStatus(status).phrase:
        return exception.detail
    return "It has been written to the server's log. Go back and try again."
