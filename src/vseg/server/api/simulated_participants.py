"""Send simulated participants to a study, and follow their progress."""

from fastapi import APIRouter, Request

from vseg.server import http, simulated_participants
from vseg.server.api.dependencies import RequestedStudy, describe_json_body, get_state
from vseg.server.api.schemas import SIMULATION_REQUEST, Group, SimulationRequest

router = APIRouter(tags=["simulation"])


@router.post(
    "/studies/{name}/simulate",
    status_code=202,
    summary="Send simulated participants",
    openapi_extra=describe_json_body(SimulationRequest),
)
async def start_simulation(request: Request, row: RequestedStudy) -> Group:
    """Send simulated participants. They take part over HTTP like people; their sessions are marked as simulated."""
    body = await http.read_json(request, SIMULATION_REQUEST)
    job = await http.run_in_thread(
        get_state(request).simulations.start,
        simulated_participants.own_address(request),
        row,
        count=body.count,
        source=body.source,
        observer=body.observer,
        pace=body.pace,
        seed=body.seed,
    )
    return Group(**job.to_json())


@router.get("/studies/{name}/simulate", summary="Get the progress of simulated participants")
def get_simulation(request: Request, row: RequestedStudy) -> Group:
    """Return the group that is running, or the last one since the server started; all zero if there was none."""
    job = get_state(request).simulations.find_job(row.name)
    return Group() if job is None else Group(**job.to_json())
