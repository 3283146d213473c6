"""Who asks, what their forms say, and the two kinds of answers: a page, or one live part of it."""

import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vseg.errors import InvalidInput, VsegError
from vseg.server import auth, http
from vseg.server.html import render_template, root_path

MOST_FIELDS = 20

Endpoint = Callable[[Request], Awaitable[Response]]


async def get_visitor(request: Request) -> auth.Visitor:
    """The browser that asks, looked up once a request."""
    if not hasattr(request.state, "visitor"):
        request.state.visitor = await http.run_in_thread(request.app.state.logins.get_visitor, request)
    found: auth.Visitor = request.state.visitor
    return found


def require_login(page: Endpoint) -> Endpoint:
    """A page that leads to the login if nobody is logged in; a live part says 401, since nobody reads it."""

    @wraps(page)
    async def guarded(request: Request) -> Response:
        if (await get_visitor(request)).name is not None:
            return await page(request)
        if "part" in request.query_params:
            return Response(status_code=401)
        wanted = _here(request) if request.method == "GET" else "/"
        return redirect(request, "/login" if wanted == "/" else f"/login?{urlencode({'next': wanted})}")

    return guarded


async def render_page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """The whole page, with the browser's form token."""
    answer = render_template(request, template, status=status, **await page_values(request), **values)
    who = await get_visitor(request)
    if who.is_new:
        request.app.state.logins.set_cookie(answer, request, who)
    return answer


async def render_fragment(request: Request, template: str, **values: Any) -> Response:
    """One live part of a page, from the template that the page itself includes."""
    return render_template(request, template, **await page_values(request), **values)


async def read_form(request: Request, most: int = http.MAX_SMALL_BODY_BYTES) -> dict[str, str]:
    """The fields of a form of ours, once it is clear that it is one."""
    content = await http.read_body(request, most)
    try:
        fields = parse_qs(
            content.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise InvalidInput(f"A form of ours has at most {MOST_FIELDS} fields; reload the page.") from None
    given = {name: values[-1] for name, values in fields.items()}
    request.app.state.logins.check_form_token(request, given.get("form_token", ""))
    return given


def local_path(text: str) -> str:
    """A path of this site that someone wanted to see, or the studies for anything else.

    Examples
    --------
    >>> own_path("/studies/mine?segments=3"), own_path("//elsewhere.org"), own_path("https://elsewhere.org")
    ('/studies/mine?segments=3', '/', '/')
    """
    return text if re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,500}", text) else "/"


def _here(request: Request) -> str:
    path = request.url.path.removeprefix(root_path(request))
    return local_path(f"{path}?{request.url.query}" if request.url.query else path)


def redirect(request: Request, path: str) -> Response:
    """Go there, with GET."""
    return RedirectResponse(f"{root_path(request)}{path}", 303)


async def page_values(request: Request) -> dict[str, Any]:
    """What the frame of every page needs: who is logged in, and the token of their forms."""
    who = await get_visitor(request)
    state = request.app.state
    return {
        "form_token": state.logins.form_token(who),
        "researcher": who.name,
        "has_report": state.report is not None,
    }


async def menu_values(request: Request) -> dict[str, Any]:
    """The same where something went wrong, for whoever is logged in; others get no cookie by a mistyped address."""
    try:
        return await page_values(request) if auth.COOKIE in request.cookies else {}
    except VsegError:  # the database cannot be asked: the page says what it has to without
        return {}
