"""Setting up a researcher, logging in and out, and one-time links."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import InvalidInput, NotAllowed, VsegError
from vseg.server import auth, http
from vseg.server.dashboard.context import (
    get_state,
    get_visitor,
    read_form,
    redirect,
    render_page,
    require_login,
    to_local_path,
)


async def set_up_researcher(request: Request) -> Response:
    """Set a name and a password through a one-time link; an existing name gets the new password."""
    state = get_state(request)
    if request.method == "GET":
        token = request.query_params.get("token", "")
        if not await http.run_in_thread(auth.is_setup_token_valid, state.db, token):
            return await _render_link_error(request, 401, auth.SETUP_LINK_USED)
        return await _render_setup(request, token=token)
    form = await read_form(request)
    name, password, token = form.get("name", ""), form.get("password", ""), form.get("token", "")
    try:
        await auth.set_up(state.db, state.login_attempts, token, name, password)
        visitor = await auth.log_in_with_password(state.db, state.login_attempts, name, password)
    except InvalidInput as error:
        return await _render_setup(request, status=422, token=token, name=name, error=error)
    except VsegError as error:
        return await _render_link_error(request, http.get_status_code(error), str(error))
    return redirect_with_cookie(request, visitor)


async def _render_setup(request: Request, **values: Any) -> Response:
    """Render the form of a one-time link; only if there are researchers, it explains what happens to a used name."""
    researchers = await http.run_in_thread(store.researchers.count_researchers, get_state(request).db)
    return await render_page(request, "setup.html", has_others=researchers > 0, **values)


async def _render_link_error(request: Request, status: int, message: str) -> Response:
    return await render_page(
        request,
        "error.html",
        status=status,
        heading="The link does not work",
        message=message,
        link="/login",
    )


async def log_in_with_password(request: Request) -> Response:
    """Log in with name and password."""
    if request.method == "GET":
        return await render_page(request, "login.html", next=request.query_params.get("next", ""))
    form = await read_form(request)
    state, target, name = get_state(request), form.get("next", ""), form.get("name", "")
    try:
        visitor = await auth.log_in_with_password(
            state.db, state.login_attempts, name, form.get("password", "")
        )
    except NotAllowed as error:
        return await render_page(request, "login.html", status=401, name=name, error=error, next=target)
    except HTTPException as error:
        response = await render_page(
            request, "login.html", status=error.status_code, error=error.detail, next=target
        )
        response.headers.update(error.headers or {})
        return response
    return redirect_with_cookie(request, visitor, to_local_path(target))


async def log_in_with_link(request: Request) -> Response:
    """Log in through a one-time link, such as the one that `vseg demo` opens.

    HEAD requests come from programs that preview links; they do not use up the link.
    """
    if request.method == "HEAD":
        return Response(status_code=401)
    try:
        visitor = await http.run_in_thread(
            auth.log_in_with_token, get_state(request).db, request.query_params.get("token", "")
        )
    except NotAllowed as error:
        return await _render_link_error(request, 401, str(error))
    return redirect_with_cookie(request, visitor, to_local_path(request.query_params.get("next", "")))


def redirect_with_cookie(request: Request, visitor: auth.Visitor, path: str = "/") -> Response:
    """Redirect to a path, and set the cookie of a browser that has just logged in."""
    response = redirect(request, path)
    get_state(request).logins.set_cookie(response, request, visitor)
    return response


async def log_out(request: Request) -> Response:
    """End all logins of this researcher, in every browser."""
    await read_form(request)
    if (name := (await get_visitor(request)).name) is not None:
        await http.run_in_thread(store.researchers.log_out, get_state(request).db, name)
    response = redirect(request, "/login")
    auth.delete_cookie(response, request)
    return response


@require_login
async def api_page(request: Request) -> Response:
    """Show the documentation of the API, where requests can be tried."""
    return await render_page(request, "api.html")
