"""The researcher's pages: the first login, logging in and out, and the list of studies.

Every form brings the browser's token; every page that shows data needs the login, and leads to it.
"""

from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vseg import store
from vseg.errors import InvalidInput, NotAllowed, VsegError
from vseg.server import auth, research, wire
from vseg.server.html import page_of, root_of


async def studies(request: Request) -> Response:
    """All studies, how far they are, and their links."""
    if (await _visitor(request)).name is None:
        return _to(request, "/login")
    return await _studies(request)


async def change(request: Request) -> Response:
    """Close or reopen a study, or make personal links, which are shown this once."""
    if (await _visitor(request)).name is None:
        return _to(request, "/login")
    form = await _form(request)
    db, name, what = request.app.state.db, request.path_params["name"], request.path_params["what"]
    if what == "links":
        row = await wire.in_thread(store.studies.named, db, name)
        tokens = await wire.in_thread(store.sessions.new_links, db, row, _count(form.get("count", "")))
        link = research.participant_link(request, name)
        return await _studies(request, new=name, links=[f"{link}?link={token}" for token in tokens])
    if what not in ("close", "reopen"):
        raise HTTPException(404)
    await wire.in_thread(getattr(store.studies, what), db, name)
    return _to(request, "/")


async def setup(request: Request) -> Response:
    """The one-time link: choose a name and a password; a name that is there gets the new one."""
    db = request.app.state.db
    if request.method == "GET":
        token = request.query_params.get("token", "")
        if not await wire.in_thread(auth.setup_is_open, db, token):
            return await _page(request, "message.html", status=401, said=auth.USED_LINK)
        return await _page(request, "setup.html", token=token)
    form = await _form(request)
    name, password, token = form.get("name", ""), form.get("password", ""), form.get("token", "")
    tries = request.app.state.tries
    try:
        await auth.set_up(db, tries, token, name, password)
        visitor = await auth.verify(db, tries, name, password)
    except InvalidInput as error:
        return await _page(request, "setup.html", status=422, token=token, name=name, said=error)
    except VsegError as error:
        return await _page(request, "message.html", status=wire.status_of(error), said=error)
    return _logged_in(request, visitor)


async def login(request: Request) -> Response:
    """Log in with name and password."""
    if request.method == "GET":
        return await _page(request, "login.html")
    form = await _form(request)
    db, tries = request.app.state.db, request.app.state.tries
    try:
        visitor = await auth.verify(db, tries, form.get("name", ""), form.get("password", ""))
    except NotAllowed as error:
        return await _page(request, "login.html", status=401, name=form.get("name", ""), said=error)
    except HTTPException as error:
        page = await _page(request, "login.html", status=error.status_code, said=error.detail)
        page.headers.update(error.headers or {})
        return page
    return _logged_in(request, visitor)


def _logged_in(request: Request, visitor: auth.Visitor) -> Response:
    answer = _to(request, "/")
    request.app.state.keys.remember(answer, request, visitor)
    return answer


async def logout(request: Request) -> Response:
    """End this researcher's logins, here and in every other browser."""
    await _form(request)
    if (name := (await _visitor(request)).name) is not None:
        await wire.in_thread(store.researchers.sign_out, request.app.state.db, name)
    answer = _to(request, "/login")
    auth.forget(answer, request)
    return answer


async def api_page(request: Request) -> Response:
    """The API, to read and to try."""
    if (await _visitor(request)).name is None:
        return _to(request, "/login")
    return await _page(request, "api.html")


async def _studies(request: Request, **values: Any) -> Response:
    db = request.app.state.db

    def summaries() -> list[dict[str, Any]]:
        return [research.summary(db, row, request) for row in store.studies.listed(db)]

    shown, most = await wire.in_thread(summaries), store.sessions.MOST_LINKS
    return await _page(request, "studies.html", studies=shown, most_links=most, **values)


async def _page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    keys, visitor = request.app.state.keys, await _visitor(request)
    token = keys.form_token(visitor)
    page = page_of(request, template, status=status, form_token=token, researcher=visitor.name, **values)
    if visitor.is_new:
        keys.remember(page, request, visitor)
    return page


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form of ours, once it is clear that it is one."""
    content = await wire.body(request)
    fields = parse_qs(content.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    form = {name: values[-1] for name, values in fields.items()}
    request.app.state.keys.check_from_here(request, form.get("form_token", ""))
    return form


async def _visitor(request: Request) -> auth.Visitor:
    if not hasattr(request.state, "visitor"):
        request.state.visitor = await wire.in_thread(request.app.state.keys.visitor, request)
    visitor: auth.Visitor = request.state.visitor
    return visitor


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidInput(f"The number of links is a whole number, got {text!r:.20}.")
    return int(text)


def _to(request: Request, path: str) -> Response:
    return RedirectResponse(f"{root_of(request)}{path}", 303)
