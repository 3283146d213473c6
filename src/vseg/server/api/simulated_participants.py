"""Sending simulated participants."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vseg.server import http, simulated_participants
from vseg.server.api.dependencies import RequestedStudy, describe_json_body

router = APIRouter(tags=["simulation"])


class SimulationRequest(BaseModel):
    """How many come, what they see by, who they are, and how fast: 0 without waiting, 1 like people."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"count": 5, "source": "truth"}}
    )

    count: Annotated[int, Field(ge=1, le=simulated_participants.MAX_PARTICIPANTS)]
    source: simulated_participants.Source = "picture"
    observer: Annotated[str, Field(max_length=40)] = "lapsing:0.05"
    pace: Annotated[float, Field(ge=0, le=10)] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class Group(BaseModel):
    """A group of simulated participants; all zero if there was none."""

    wanted: int = 0
    done: int = 0
    running: bool = False
    failed: bool = False
    said: str = ""


WISH: TypeAdapter[SimulationRequest] = TypeAdapter(SimulationRequest)


@router.post(
    "/studies/{name}/simulate",
    status_code=202,
    summary="Send simulated participants",
    openapi_extra=describe_json_body(SimulationRequest),
)
async def start_simulation(request: Request, row: RequestedStudy) -> Group:
    """They take part over HTTP like anyone else, and their sessions say that they are simulated."""
    wish = await http.read_json(request, WISH)
    groups: simulated_participants.Simulations = request.app.state.simulations
    job = await http.run_in_thread(
        groups.start, simulated_participants.own_address(request), row, **wish.model_dump(mode="python")
    )
    return Group(**job.to_json())


@router.get("/studies/{name}/simulate", summary="How far they are")
def get_simulation(request: Request, row: RequestedStudy) -> Group:
    """The group that runs now, or ran last since the server started."""
    groups: simulated_participants.Simulations = request.app.state.simulations
    job = groups.find_job(row.name)
    return Group() if job is None else Group(**job.to_json())
