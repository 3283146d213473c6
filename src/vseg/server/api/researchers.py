"""Who has a login here, and taking one away."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from vseg import store
from vseg.store.researchers import Researcher

router = APIRouter(tags=["researchers"])


@router.get("/researchers", summary="Everyone with a login")
def list_researchers(request: Request) -> list[Researcher]:
    """Names, and since when; all of them see all studies."""
    return store.researchers.list_researchers(request.app.state.db)


@router.delete("/researchers", status_code=204, summary="Remove a researcher", response_class=Response)
def remove_researcher(
    request: Request,
    name: Annotated[str, Query(max_length=64, description="The name as in the list.")],
) -> Response:
    """End someone's logins, tokens and links at once, and a one-time link that waits; 409 for the last researcher."""
    store.researchers.remove(request.app.state.db, name)
    return Response(status_code=204)
