"""Targets of a complete run of `make chaos`, besides that nothing is lost: enough faults, fast recovery."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.rounds import Outcome
from chaos.security_counts import GENERATED, MATRIX, Notes

RESPONSES, FAULTS, RECOVERY_S = 100_000, 200, 2.0
REQUESTS = 20_000
NONE: Notes = {}


@dataclass(frozen=True)
class Target:
    """A number that a run has to reach, and what it reached."""

    name: str
    required: str
    reached: str
    passed: bool

    def __str__(self) -> str:
        return f"{self.name}: target {self.required}, reached {self.reached}"


def numbers(outcomes: Sequence[Outcome], notes: Mapping[str, Counter[str]] = NONE) -> list[Target]:
    """Check the targets over all rounds, and those of tests/security if their counts are available."""
    responses = sum(outcome.responses for outcome in outcomes)
    faults = sum(outcome.injected for outcome in outcomes)
    killed = [s for outcome in outcomes if outcome.kills_server for s in outcome.recoveries_s]
    longest = max(killed, default=float("inf"))
    took = f"{longest:.2f} s ({len(killed)} times)" if killed else "nothing, because no server was killed"
    return [
        Target("responses acknowledged", f"at least {RESPONSES:,}", f"{responses:,}", responses >= RESPONSES),
        Target("faults injected", f"at least {FAULTS}", str(faults), faults >= FAULTS),
        Target(
            "longest recovery after SIGKILL of the server or a worker", f"less than {RECOVERY_S:g} s", took,
            longest < RECOVERY_S,
        ),
        *(judged(notes[file]) for file, judged in COUNTED.items() if file in notes),
    ]  # fmt: skip


def _generated(counts: Counter[str]) -> Target:
    requests, errors = counts["requests"], counts["server errors"]
    return Target(
        "generated requests (test_generated.py)", f"at least {REQUESTS:,}, no server error",
        f"{requests:,}, server errors: {errors}{_describe_failure(counts)}",
        requests >= REQUESTS and not (errors or counts["failed"]),
    )  # fmt: skip


def _refused(counts: Counter[str]) -> Target:
    refused, read, written = counts["refused"], counts["read"], counts["written"]
    return Target(
        "unauthorised requests refused (test_matrix.py)",
        "no unauthorised read or write",
        f"{refused:,}, unauthorised reads: {read}, writes: {written}{_describe_failure(counts)}",
        refused > 0 and not (read or written or counts["failed"]),
    )


COUNTED = {GENERATED: _generated, MATRIX: _refused}


def _describe_failure(counts: Counter[str]) -> str:
    return "; the test FAILED" if counts["failed"] else ""


def describe_missed(outcomes: Sequence[Outcome], notes: Mapping[str, Counter[str]] = NONE) -> str:
    """Return the missed targets in one line; empty if all were reached."""
    return "; ".join(str(target) for target in numbers(outcomes, notes) if not target.passed)


def is_too_slow(outcome: Outcome) -> bool:
    """Return whether any recovery from a SIGKILL took too long."""
    return outcome.kills_server and max(outcome.recoveries_s, default=0.0) >= RECOVERY_S
