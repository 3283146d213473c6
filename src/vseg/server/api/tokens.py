"""Personal tokens for scripts, and the name of the current researcher."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from vseg import store
from vseg.server import auth, http
from vseg.server.api.dependencies import LoggedInName, ResearcherName, describe_json_body, get_state
from vseg.server.api.schemas import NEW_TOKEN, Me, NewToken, Token
from vseg.store.tokens import TokenRow

router = APIRouter(tags=["tokens"])


@router.get("/me", summary="Get the current researcher")
def get_current_researcher(request: Request, name: ResearcherName) -> Me:
    """Return the name of the researcher who is logged in or owns the token."""
    state = get_state(request)
    if auth.get_researcher_by_token(state.db, request):
        return Me(name=name, csrf_token="")
    return Me(name=name, csrf_token=state.logins.form_token(state.logins.get_visitor(request)))


@router.get("/tokens", summary="List your tokens")
def list_tokens(request: Request, name: ResearcherName) -> list[TokenRow]:
    """Return labels and times; the tokens themselves are not stored."""
    return store.tokens.list_tokens(get_state(request).db, name)


@router.post("/tokens", status_code=201, summary="Create a token", openapi_extra=describe_json_body(NewToken))
async def create_token(request: Request, name: LoggedInName) -> Token:
    """Create a token for a script, for a year. It cannot be shown again; treat it like a password.

    This needs a login: otherwise, a stolen token could be used to make others that outlive it.
    """
    db, label = get_state(request).db, (await http.read_json(request, NEW_TOKEN)).label
    return Token(token=await http.run_in_thread(store.tokens.create, db, name, label))


@router.delete("/tokens/{number}", status_code=204, summary="Revoke a token", response_class=Response)
def revoke_token(
    request: Request,
    name: ResearcherName,
    number: Annotated[int, Path(ge=1, le=2**31 - 1, description="The token's `id`, as in the list.")],
) -> Response:
    """Revoke one of your tokens at once."""
    store.tokens.revoke(get_state(request).db, name, number)
    return Response(status_code=204)
