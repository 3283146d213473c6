"""Show errors as HTML pages to browsers; scripts get the JSON errors of http.py."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypedDict

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vseg.errors import VsegError
from vseg.server import http
from vseg.server.html import render_template

HEADINGS = {
    401: "Please log in",
    403: "The form was not accepted",
    404: "Page not found",
    405: "Page not found",
    409: "Not possible right now",
    422: "This did not work",
    429: "Please wait a moment",
    500: "Something went wrong",
    503: "The server is busy",
}


class MenuValues(TypedDict, total=False):
    """What the menu at the top of a page shows; it is empty if nobody is logged in."""

    form_token: str
    researcher: str | None
    has_report: bool


GetMenuValues = Callable[[Request], Awaitable[MenuValues]]


async def get_empty_menu(request: Request) -> MenuValues:
    """Return no menu, as for participants and files."""
    return {}


def build_handlers(get_menu: GetMenuValues = get_empty_menu) -> dict[int | type[Exception], http.Handler]:
    """Return the exception handlers of an application whose error pages have this menu."""
    return {kind: _add_html(handler, get_menu) for kind, handler in http.HANDLERS.items()}


def _add_html(handler: http.Handler, get_menu: GetMenuValues) -> http.Handler:
    async def handle(request: Request, exception: Exception) -> Response:
        response = await handler(request, exception)
        if "text/html" not in request.headers.get("accept", ""):
            return response
        status = response.status_code
        heading = HEADINGS.get(status, HTTPStatus(status).phrase)
        message = _describe_error(exception, status)
        menu = {} if status >= 500 else await get_menu(request)
        page = render_template(request, "error.html", status=status, heading=heading, message=message, **menu)
        if (retry_after := response.headers.get("retry-after")) is not None:
            page.headers["Retry-After"] = retry_after
        return page

    return handle


def _describe_error(exception: Exception, status: int) -> str:
    if isinstance(exception, VsegError):
        return http.get_public_message(exception)
    if status in (404, 405):
        return (
            "This server has no page at that address. It may be mistyped, or the data it showed were erased."
        )
    if isinstance(exception, HTTPException) and exception.detail != HTTPStatus(status).phrase:
        return exception.detail
    return "The error was written to the server's log. Go back and try again."
