"""What a full run of `make chaos` has to reach, beside that nothing is lost: enough of everything, and soon enough."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.rounds import Outcome

RESPONSES, FAULTS, RECOVERY_S = 100_000, 200, 2.0


@dataclass(frozen=True)
class Number:
    """One that is promised, and what came of it."""

    what: str
    wanted: str
    reached: str
    well: bool

    def __str__(self) -> str:
        return f"{self.what}: wanted {self.wanted}, reached {self.reached}"


def numbers(outcomes: Sequence[Outcome]) -> list[Number]:
    """Over all rounds together."""
    responses = sum(outcome.responses for outcome in outcomes)
    faults = sum(outcome.injected for outcome in outcomes)
    killed = [s for outcome in outcomes if outcome.kills_server for s in outcome.recoveries_s]
    longest = max(killed, default=float("inf"))
    took = f"{longest:.2f} s ({len(killed)} times)" if killed else "nothing, since none was killed"
    return [
        Number("responses acknowledged", f"at least {RESPONSES:,}", f"{responses:,}", responses >= RESPONSES),
        Number("faults injected", f"at least {FAULTS}", str(faults), faults >= FAULTS),
        Number(
            "longest recovery after SIGKILL of the server or a worker", f"less than {RECOVERY_S:g} s", took,
            longest < RECOVERY_S,
        ),
    ]  # fmt: skip


def missed(outcomes: Sequence[Outcome]) -> str:
    """One line of which were not reached; empty where all were."""
    return "; ".join(str(number) for number in numbers(outcomes) if not number.well)
