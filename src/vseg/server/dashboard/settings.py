"""The settings page: the researcher's password, tokens for scripts, and the list of researchers."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import Conflict, InvalidInput, NotAllowed
from vseg.server import auth, http
from vseg.server.dashboard.context import (
    get_state,
    get_visitor,
    parse_whole_number,
    read_form,
    redirect,
    render_page,
    require_login,
)
from vseg.server.dashboard.login import redirect_with_cookie


@require_login
async def settings_page(request: Request) -> Response:
    """Show the settings."""
    return await _render(request, changed=request.query_params.get("changed"))


@require_login
async def change_password(request: Request) -> Response:
    """Change the password; end all other logins of this researcher and, if requested, revoke their tokens."""
    form = await read_form(request)
    state, name = get_state(request), await _researcher_name(request)
    try:
        visitor = await auth.change_password(
            state.db, state.login_attempts, name, form.get("old", ""), form.get("password", "")
        )
    except (InvalidInput, NotAllowed) as error:
        return await _render(request, status=http.get_status_code(error), password_error=error)
    if form.get("revoke") != "yes":
        return redirect_with_cookie(request, visitor, "/settings?changed=password#password")
    for token in await http.run_in_thread(store.tokens.list_tokens, state.db, name):
        await http.run_in_thread(store.tokens.revoke, state.db, name, token.id)
    return redirect_with_cookie(request, visitor, "/settings?changed=tokens#password")


@require_login
async def create_token(request: Request) -> Response:
    """Create a token for scripts and show it once."""
    form = await read_form(request)
    db, name = get_state(request).db, await _researcher_name(request)
    try:
        token = await http.run_in_thread(store.tokens.create, db, name, form.get("label", ""))
    except InvalidInput as error:
        return await _render(request, status=422, token_error=error)
    return await _render(request, token=token)


@require_login
async def revoke_token(request: Request) -> Response:
    """Revoke a token."""
    form = await read_form(request)
    token_id = parse_whole_number(form.get("token", ""), "The number of a token")
    db, name = get_state(request).db, await _researcher_name(request)
    await http.run_in_thread(store.tokens.revoke, db, name, token_id)
    return redirect(request, "/settings#tokens")


@require_login
async def create_researcher_link(request: Request) -> Response:
    """Create a one-time link for setting a name and a password, and show it once."""
    await read_form(request)
    token = await http.run_in_thread(auth.create_setup_token, get_state(request).db)
    return await _render(request, link=f"{request.base_url}setup?token={token}")


@require_login
async def remove_researcher(request: Request) -> Response:
    """Remove a researcher if the form confirms it; researchers who remove themselves are logged out."""
    form = await read_form(request)
    name = form.get("name", "")
    try:
        if form.get("confirmed") != "yes":
            raise InvalidInput(f"Tick the box to remove {name!r:.80}, and send the form again.")
        await http.run_in_thread(store.researchers.remove, get_state(request).db, name)
    except (InvalidInput, Conflict) as error:
        return await _render(request, status=http.get_status_code(error), researcher_error=error)
    return redirect(request, "/login" if name == await _researcher_name(request) else "/settings#researchers")


async def _render(request: Request, *, status: int = 200, **values: Any) -> Response:
    db, name = get_state(request).db, await _researcher_name(request)
    tokens = await http.run_in_thread(store.tokens.list_tokens, db, name)
    researchers = await http.run_in_thread(store.researchers.list_researchers, db)
    return await render_page(
        request, "settings.html", status=status, tokens=tokens, researchers=researchers, **values
    )


async def _researcher_name(request: Request) -> str:
    return (await get_visitor(request)).name or ""
