"""What a full run of `make chaos` has to reach, beside that nothing is lost: enough of everything, and soon enough."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.counted import GENERATED, MATRIX, Notes
from chaos.rounds import Outcome

RESPONSES, FAULTS, RECOVERY_S = 100_000, 200, 2.0
REQUESTS = 20_000
NONE: Notes = {}


@dataclass(frozen=True)
class Number:
    """One that is promised, and what came of it."""

    what: str
    wanted: str
    reached: str
    well: bool

    def __str__(self) -> str:
        return f"{self.what}: wanted {self.wanted}, reached {self.reached}"


def numbers(outcomes: Sequence[Outcome], notes: Mapping[str, Counter[str]] = NONE) -> list[Number]:
    """Over all rounds together; and what the tests of tests/security have counted, where they have."""
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
        *(judged(notes[file]) for file, judged in COUNTED.items() if file in notes),
    ]  # fmt: skip


def _generated(counts: Counter[str]) -> Number:
    requests, errors = counts["requests"], counts["server errors"]
    return Number(
        "generated requests (test_generated.py)", f"at least {REQUESTS:,}, no server error",
        f"{requests:,}, server errors: {errors}{_failed(counts)}",
        requests >= REQUESTS and not (errors or counts["failed"]),
    )  # fmt: skip


def _refused(counts: Counter[str]) -> Number:
    refused, read, written = counts["refused"], counts["read"], counts["written"]
    return Number(
        "requests refused to whoever may not (test_matrix.py)",
        "no unauthorised read or write",
        f"{refused:,}, unauthorised reads: {read}, writes: {written}{_failed(counts)}",
        refused > 0 and not (read or written or counts["failed"]),
    )


COUNTED = {GENERATED: _generated, MATRIX: _refused}


def _failed(counts: Counter[str]) -> str:
    return "; the test FAILED" if counts["failed"] else ""


def missed(outcomes: Sequence[Outcome], notes: Mapping[str, Counter[str]] = NONE) -> str:
    """One line of which were not reached; empty where all were."""
    return "; ".join(str(number) for number in numbers(outcomes, notes) if not number.well)


def too_slow(outcome: Outcome) -> bool:
    """Whether it ever took too long after a SIGKILL."""
    return outcome.kills_server and max(outcome.recoveries_s, default=0.0) >= RECOVERY_S
