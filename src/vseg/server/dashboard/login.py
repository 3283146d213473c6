"""The first login, logging in and out, and links that work once."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import InvalidInput, NotAllowed, VsegError
from vseg.server import auth, http
from vseg.server.dashboard.context import (
    get_visitor,
    local_path,
    read_form,
    redirect,
    render_page,
    require_login,
)


async def set_up_researcher(request: Request) -> Response:
    """The one-time link: choose a name and a password; a name that is there gets the new one."""
    db = request.app.state.db
    if request.method == "GET":
        token = request.query_params.get("token", "")
        if not await http.run_in_thread(auth.is_setup_token_valid, db, token):
            return await render_page(request, "message.html", status=401, said=auth.SETUP_LINK_USED)
        return await _choosing(request, token=token)
    given = await read_form(request)
    name, password, token = given.get("name", ""), given.get("password", ""), given.get("token", "")
    attempts = request.app.state.login_attempts
    try:
        await auth.set_up(db, attempts, token, name, password)
        known = await auth.log_in(db, attempts, name, password)
    except InvalidInput as error:
        return await _choosing(request, status=422, token=token, name=name, said=error)
    except VsegError as error:
        return await render_page(request, "message.html", status=http.get_status_code(error), said=error)
    return redirect_with_cookie(request, known)


async def _choosing(request: Request, **values: Any) -> Response:
    """The form of a one-time link; the first researcher need not read what happens to those who are there."""
    others = await http.run_in_thread(store.researchers.count_researchers, request.app.state.db)
    return await render_page(request, "setup.html", has_others=others > 0, **values)


async def log_in(request: Request) -> Response:
    """Log in with name and password."""
    if request.method == "GET":
        return await render_page(request, "login.html", next=request.query_params.get("next", ""))
    given = await read_form(request)
    wanted = given.get("next", "")
    db, attempts = request.app.state.db, request.app.state.login_attempts
    try:
        known = await auth.log_in(db, attempts, given.get("name", ""), given.get("password", ""))
    except NotAllowed as error:
        name = given.get("name", "")
        return await render_page(request, "login.html", status=401, name=name, said=error, next=wanted)
    except HTTPException as error:
        late = await render_page(
            request, "login.html", status=error.status_code, said=error.detail, next=wanted
        )
        late.headers.update(error.headers or {})
        return late
    return redirect_with_cookie(request, known, local_path(wanted))


async def sign_in(request: Request) -> Response:
    """A link that logs in once, within a few minutes, such as the one that `vseg demo` opens.

    Whoever only asks for the head is a programme that looks ahead, not a person: the link still works afterwards.
    """
    if request.method == "HEAD":
        return Response(status_code=401)
    db, token = request.app.state.db, request.query_params.get("token", "")
    try:
        known = await http.run_in_thread(auth.sign_in, db, token)
    except NotAllowed as error:
        return await render_page(request, "message.html", status=401, said=error)
    return redirect_with_cookie(request, known, local_path(request.query_params.get("next", "")))


def redirect_with_cookie(request: Request, known: auth.Visitor, path: str = "/") -> Response:
    """Give the browser its cookie, and go on."""
    answer = redirect(request, path)
    request.app.state.logins.set_cookie(answer, request, known)
    return answer


async def log_out(request: Request) -> Response:
    """End this researcher's logins, here and in every other browser."""
    await read_form(request)
    if (name := (await get_visitor(request)).name) is not None:
        await http.run_in_thread(store.researchers.sign_out, request.app.state.db, name)
    answer = redirect(request, "/login")
    auth.delete_cookie(answer, request)
    return answer


@require_login
async def api_page(request: Request) -> Response:
    """The API, to read and to try."""
    return await render_page(request, "api.html")
