"""The researchers of this server: list them, and remove one."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from vseg import store
from vseg.server.api.dependencies import LoggedInName, get_state
from vseg.store.researchers import Researcher

router = APIRouter(tags=["researchers"])


@router.get("/researchers", summary="List all researchers")
def list_researchers(request: Request) -> list[Researcher]:
    """Return the name of each researcher and when it was created; every researcher sees all studies."""
    return store.researchers.list_researchers(get_state(request).db)


@router.delete("/researchers", status_code=204, summary="Remove a researcher", response_class=Response)
def remove_researcher(
    request: Request,
    _: LoggedInName,
    name: Annotated[str, Query(max_length=64, description="The name as in the list.")],
) -> Response:
    """End a researcher's logins, tokens and sign-in links, and revoke an unused one-time link; 409 for the last one.

    This needs a login: otherwise, a stolen token could be used to lock everyone else out.
    """
    store.researchers.remove(get_state(request).db, name)
    return Response(status_code=204)
