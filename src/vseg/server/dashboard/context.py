"""What all pages of the dashboard share: the login, forms, redirects, and rendering pages and their live parts."""

import re
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vseg import store
from vseg.errors import InvalidInput, VsegError
from vseg.server import auth, http
from vseg.server.api.dependencies import ApiState
from vseg.server.error_pages import MenuValues
from vseg.server.html import render_template, root_path
from vseg.store.studies import StudyRow

if TYPE_CHECKING:
    from vseg.server.dashboard.study_overview import OverviewCache

MAX_FORM_FIELDS = 20

Endpoint = Callable[[Request], Awaitable[Response]]


class DashboardState(ApiState, Protocol):
    """What app.py stores in `app.state` of the researchers' application."""

    login_attempts: auth.LoginAttempts
    overviews: "OverviewCache"
    report: Path | None


def get_state(request: Request) -> DashboardState:
    """Return the application's state with its types."""
    return cast(DashboardState, request.app.state)


async def get_visitor(request: Request) -> auth.Visitor:
    """Return the browser that sent this request; it is looked up once per request."""
    if not hasattr(request.state, "visitor"):
        request.state.visitor = await http.run_in_thread(get_state(request).logins.get_visitor, request)
    visitor: auth.Visitor = request.state.visitor
    return visitor


async def load_study(request: Request) -> StudyRow:
    """Return the study that the path names; raise `NotFound` if there is none."""
    name = request.path_params["name"]
    return await http.run_in_thread(store.studies.get_study, get_state(request).db, name)


def require_login(endpoint: Endpoint) -> Endpoint:
    """Make a page redirect to the login if nobody is logged in; its live parts answer 401 instead."""

    @wraps(endpoint)
    async def check_login(request: Request) -> Response:
        if (await get_visitor(request)).name is not None:
            return await endpoint(request)
        if "part" in request.query_params:
            return Response(status_code=401)
        target = _get_requested_path(request) if request.method == "GET" else "/"
        return redirect(request, "/login" if target == "/" else f"/login?{urlencode({'next': target})}")

    return check_login


async def render_page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a whole page; set the cookie of a browser that has none."""
    response = render_template(request, template, status=status, **await _page_values(request), **values)
    visitor = await get_visitor(request)
    if visitor.is_new:
        get_state(request).logins.set_cookie(response, request, visitor)
    return response


async def render_fragment(request: Request, template: str, **values: Any) -> Response:
    """Render one live part of a page, from the template that the page itself includes."""
    return render_template(request, template, **await _page_values(request), **values)


async def read_form(request: Request, max_bytes: int = http.MAX_SMALL_BODY_BYTES) -> dict[str, str]:
    """Return the fields of a form after checking its form token; raise 403 if the token is wrong."""
    body = await http.read_body(request, max_bytes)
    try:
        fields = parse_qs(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        raise InvalidInput(f"A form has at most {MAX_FORM_FIELDS} fields; reload the page.") from None
    form = {name: values[-1] for name, values in fields.items()}
    get_state(request).logins.check_form_token(request, form.get("form_token", ""))
    return form


def parse_whole_number(text: str, name: str) -> int:
    """Return the whole number in the field `name` of a form; raise `InvalidInput` for anything else."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidInput(f"{name} should be a whole number, got {text!r:.20}.")
    return int(text)


def to_local_path(text: str) -> str:
    """Return a path if it lies on this site, else "/"; redirects from forms and links go through this.

    Examples
    --------
    >>> [to_local_path(text) for text in ("/studies/mine?segments=3", "//elsewhere.org", "https://elsewhere.org")]
    ['/studies/mine?segments=3', '/', '/']
    """
    return text if re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,500}", text) else "/"


def _get_requested_path(request: Request) -> str:
    path = request.url.path.removeprefix(root_path(request))
    return to_local_path(f"{path}?{request.url.query}" if request.url.query else path)


def redirect(request: Request, path: str) -> Response:
    """Redirect to a path of this site, to be loaded with GET."""
    return RedirectResponse(f"{root_path(request)}{path}", 303)


async def _page_values(request: Request) -> MenuValues:
    """Return what the base template of every page needs: the researcher's name and the form token."""
    visitor = await get_visitor(request)
    state = get_state(request)
    return {
        "form_token": state.logins.form_token(visitor),
        "researcher": visitor.name,
        "has_report": state.report is not None,
    }


async def menu_values(request: Request) -> MenuValues:
    """Return the values of the menu of an error page; none, and so no cookie, for a browser without a cookie."""
    try:
        return await _page_values(request) if auth.COOKIE in request.cookies else {}
    except VsegError:  # the database does not answer; show the error without a menu
        return {}
