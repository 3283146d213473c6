"""A researcher's own matters: the password, tokens for scripts, and who else has a login."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import Conflict, InvalidInput, NotAllowed
from vseg.server import auth, http
from vseg.server.dashboard.context import get_visitor, read_form, redirect, render_page, require_login
from vseg.server.dashboard.login import redirect_with_cookie
from vseg.server.dashboard.study import parse_whole_number


@require_login
async def settings_page(request: Request) -> Response:
    """All of it."""
    return await _shown(request, changed=request.query_params.get("changed"))


@require_login
async def change_password(request: Request) -> Response:
    """Another password; all other logins of this researcher end, and their tokens if they wish so."""
    given = await read_form(request)
    db, attempts, name = request.app.state.db, request.app.state.login_attempts, await _name(request)
    try:
        known = await auth.change_password(
            db, attempts, name, given.get("old", ""), given.get("password", "")
        )
    except (InvalidInput, NotAllowed) as error:
        return await _shown(request, status=http.get_status_code(error), said=error)
    if given.get("revoke") != "yes":
        return redirect_with_cookie(request, known, "/settings?changed=password#password")
    for token in await http.run_in_thread(store.tokens.list_tokens, db, name):
        await http.run_in_thread(store.tokens.revoke, db, name, token.id)
    return redirect_with_cookie(request, known, "/settings?changed=tokens#password")


@require_login
async def create_token(request: Request) -> Response:
    """A token for scripts, shown this once."""
    given = await read_form(request)
    try:
        made = await http.run_in_thread(
            store.tokens.create, request.app.state.db, await _name(request), given.get("label", "")
        )
    except InvalidInput as error:
        return await _shown(request, status=422, token_said=error)
    return await _shown(request, token=made)


@require_login
async def revoke_token(request: Request) -> Response:
    """Make a token worthless."""
    given = await read_form(request)
    number = parse_whole_number(given.get("token", ""), "The number of a token")
    await http.run_in_thread(store.tokens.revoke, request.app.state.db, await _name(request), number)
    return redirect(request, "/settings#tokens")


@require_login
async def create_researcher_link(request: Request) -> Response:
    """A one-time link with which someone chooses a name and a password."""
    await read_form(request)
    token = await http.run_in_thread(auth.create_setup_token, request.app.state.db)
    return await _shown(request, link=f"{request.base_url}setup?token={token}")


@require_login
async def remove_researcher(request: Request) -> Response:
    """Take someone's login away, once it was confirmed; whoever removes themselves is out."""
    given = await read_form(request)
    name = given.get("name", "")
    try:
        if given.get("confirmed") != "yes":
            raise InvalidInput(f"Tick the box to remove {name!r:.80}, and send the form again.")
        await http.run_in_thread(store.researchers.remove, request.app.state.db, name)
    except (InvalidInput, Conflict) as error:
        return await _shown(request, status=http.get_status_code(error), researcher_said=error)
    return redirect(request, "/login" if name == await _name(request) else "/settings#researchers")


async def _shown(request: Request, *, status: int = 200, **values: Any) -> Response:
    db, name = request.app.state.db, await _name(request)
    tokens = await http.run_in_thread(store.tokens.list_tokens, db, name)
    researchers = await http.run_in_thread(store.researchers.list_researchers, db)
    return await render_page(
        request, "settings.html", status=status, tokens=tokens, researchers=researchers, **values
    )


async def _name(request: Request) -> str:
    return (await get_visitor(request)).name or ""
