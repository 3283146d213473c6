"""Personal tokens, and who one is."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from vseg import store
from vseg.server import auth, http
from vseg.server.api.dependencies import ResearcherName, describe_json_body
from vseg.server.api.schemas import NEW_TOKEN, Me, NewToken, Token
from vseg.store.tokens import TokenRow

router = APIRouter(tags=["tokens"])


@router.get("/me", summary="Who is asking")
def get_current_researcher(request: Request, name: ResearcherName) -> Me:
    """The name of whoever is logged in or whose token this is."""
    logins, by_token = request.app.state.logins, auth.get_researcher_by_token(request.app.state.db, request)
    return Me(name=name, csrf_token="" if by_token else logins.form_token(logins.get_visitor(request)))


@router.get("/tokens", summary="Your tokens")
def list_tokens(request: Request, name: ResearcherName) -> list[TokenRow]:
    """Labels and times; the tokens themselves are not stored."""
    return store.tokens.list_tokens(request.app.state.db, name)


@router.post("/tokens", status_code=201, summary="Make a token", openapi_extra=describe_json_body(NewToken))
async def create_token(request: Request, name: ResearcherName) -> Token:
    """A token for a script, shown this once: treat it like a password."""
    label = (await http.read_json(request, NEW_TOKEN)).label
    return Token(token=await http.run_in_thread(store.tokens.create, request.app.state.db, name, label))


@router.delete("/tokens/{number}", status_code=204, summary="Revoke a token", response_class=Response)
def revoke_token(
    request: Request,
    name: ResearcherName,
    number: Annotated[int, Path(ge=1, le=2**31 - 1, description="The token's `id`, as in the list.")],
) -> Response:
    """Make one of your tokens worthless, at once."""
    store.tokens.revoke(request.app.state.db, name, number)
    return Response(status_code=204)
