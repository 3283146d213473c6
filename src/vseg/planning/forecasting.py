"""forecast(): simulate the participants of a study and gather what it would find."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from vseg.designs import advised_answers, paper_trials
from vseg.errors import InvalidInput
from vseg.planning.assumptions import Assumptions
from vseg.planning.forecast_table import Forecast
from vseg.planning.methods import METHODS
from vseg.planning.simulation import simulate_participant, sweep_setting
from vseg.study.cost import estimate_cost
from vseg.study.schema import Study, parse_study
from vseg.study.sections import DesignSection
from vseg.sweeps import Table, sweep
from vseg.sweeps.workers import Workers

DEFAULT_PARTICIPANTS: tuple[int, ...] = (5, 10, 15, 30)
DEFAULT_FACTORS = (0.5, 1.0, 2.5)  # numbers of trials, as multiples of the advised answers
DEFAULT_METHODS: tuple[str, ...] = ("paper", "posterior")
DEFAULT_REPEATS = 60
MIN_REPEATS = 10
MIN_TRIALS = 10
MAX_PARTICIPANTS = 1000
MAX_BLOCKS = 100
MAX_STUDY_SEGMENTS = 12  # a study file allows no more
COLUMNS = (
    "condition", "method", "trials", "error", "true_entropy", "entropy", "compared_entropy", "entropy_spread",
    "entropy_error",
)  # fmt: skip


def forecast(
    assumptions: Assumptions,
    *,
    trials: Sequence[int] | None = None,
    participants: Sequence[int] = DEFAULT_PARTICIPANTS,
    methods: Sequence[str] = DEFAULT_METHODS,
    repeats: int = DEFAULT_REPEATS,
    study: Study | None = None,
    executor: str | Executor | Workers | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int,
) -> Forecast:
    """Forecast what a study would find: errors of maps and entropies, and the power to tell two conditions apart.

    In each condition `repeats` participants are simulated once, with maps of their own, and asked by every method with
    every number of trials. The power for a number of participants follows by drawing from these, without new fits.

    Parameters
    ----------
    assumptions : Assumptions
        The study and what is expected of its participants.
    trials : sequence of int, optional
        Numbers of trials a participant answers; by default half, one and two and a half times the
        advised number of answers.
    participants : sequence of int
        Numbers of participants in each condition.
    methods : sequence of "paper", "posterior", "adaptive"
        Repeated random pairs and the penalised reconstruction; new pairs in every trial and the posterior; pairs chosen
        from the answers and the posterior (takes a minute or more for ten participants).
    repeats : int
        Participants simulated in each condition.
    study : Study, optional
        The study whose timing tells how many minutes a participant takes.
    executor, checkpoint, progress
        As in `vseg.sweep`; a step of the progress is one participant in all conditions.
    seed : int

    Returns
    -------
    Forecast

    Examples
    --------
    >>> assumptions = Assumptions(grid=4, segments=2, entropy=0.1, against=0.4)
    >>> result = forecast(assumptions, trials=[32], participants=[5, 20], repeats=10, seed=0)
    >>> result.table.columns[:3], len(result.table)
    (('method', 'trials', 'minutes_each'), 4)
    """
    if not isinstance(assumptions, Assumptions):
        raise InvalidInput(f"Expected Assumptions about the study, got {assumptions!r:.80}.")
    counts, sizes = _check_trials(assumptions, trials), _check_participants(participants)
    names = _check_methods(methods)
    if not isinstance(repeats, (int, np.integer)) or repeats < MIN_REPEATS:
        raise InvalidInput(
            f"A forecast simulates {MIN_REPEATS} participants a condition or more, got {repeats!r}."
        )
    template = study or make_study(assumptions)
    minutes = {count: minutes_per_participant(template, count) for count in counts}
    rows = sweep(
        simulate_participant,
        [sweep_setting(assumptions, counts, names)],
        repeats=int(repeats),
        seed=seed,
        executor=executor,
        checkpoint=checkpoint,
        progress=progress,
    ).rows
    simulated = Table({"repeat": row["repeat"], **{name: row[name] for name in COLUMNS}} for row in rows)
    return Forecast(assumptions, simulated, sizes, minutes, int(seed))


def default_trials(assumptions: Assumptions) -> tuple[int, ...]:
    """Return half, one and two and a half times the advised number of answers, or the fewest trials of a large grid."""
    middle = max(advised_answers(assumptions.segments), 2 * minimum_trials(assumptions.grid))
    return tuple(int(factor * middle) for factor in DEFAULT_FACTORS)


def minimum_trials(grid: int) -> int:
    """Return the fewest trials that ask about every location and leave some to hold out for the choice of λ."""
    return max(-(-(grid**2) // 2), MIN_TRIALS)


def make_study(assumptions: Assumptions) -> Study:
    """Return a study with default timing and the assumed grid and segments."""
    return parse_study(f"""
        name = "forecast"
        segments = {min(assumptions.segments, MAX_STUDY_SEGMENTS)}
        participants = 1
        layout = {{grid = {assumptions.grid}}}
        images = [{{name = "image", texture = "low"}}]
    """)


def minutes_per_participant(study: Study, trials: int) -> float:
    """Return the minutes for this many trials about one image, with everything else the study asks.

    Examples
    --------
    >>> study = make_study(Assumptions(grid=11, segments=2, entropy=0.2))
    >>> [round(minutes_per_participant(study, trials)) for trials in (121, 605)]
    [9, 22]
    """
    fewest = -(-len(study.layout.build()) // 2)
    blocks = min(-(-trials // study.pairs_per_block), MAX_BLOCKS)
    design = DesignSection(name="covering", trials=max(-(-trials // blocks), fewest), blocks=blocks)
    one_image = {"images": study.images[:1], "assignment": type(study.assignment)()}
    return estimate_cost(study.model_copy(update={"design": design, **one_image})).minutes_each


def _check_trials(assumptions: Assumptions, trials: Sequence[int] | None) -> tuple[int, ...]:
    counts = default_trials(assumptions) if trials is None else _check_counts(trials, "trials", (121, 242))
    layout, fewest = assumptions.layout, minimum_trials(assumptions.grid)
    most = 100 * paper_trials(layout, assumptions.segments)
    for count in counts:
        if not fewest <= count <= most:
            raise InvalidInput(
                f"A participant on {layout} answers {fewest} trials (every location once) to {most}, got {count!r}."
            )
    if not counts:
        raise InvalidInput("Expected one number of trials or more, got none.")
    return counts


def _check_participants(participants: Sequence[int]) -> tuple[int, ...]:
    counts = _check_counts(participants, "participants", DEFAULT_PARTICIPANTS)
    for count in counts:
        if not 2 <= count <= MAX_PARTICIPANTS:
            raise InvalidInput(f"A condition has 2 to {MAX_PARTICIPANTS} participants, got {count!r}.")
    if not counts:
        raise InvalidInput("Expected one number of participants or more, got none.")
    return counts


def _check_counts(given: object, name: str, examples: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distinct whole numbers in ascending order."""
    counts: list[Any] = list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(count, (int, np.integer)) and not isinstance(count, bool) for count in counts):
        raise InvalidInput(f"Expected whole numbers as {name}, such as {list(examples)}, got {given!r}.")
    return tuple(sorted({int(count) for count in counts}))


def _check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        raise InvalidInput(f"Expected a list of methods, such as ['paper', 'posterior'], got {methods!r}.")
    names = tuple(methods)
    for name in names:
        if not isinstance(name, str) or name not in METHODS:
            raise InvalidInput(f"Unknown method {name!r}; choose some of {', '.join(METHODS)}.")
    if not names:
        raise InvalidInput(f"Expected one method or more of {', '.join(METHODS)}, got none.")
    return tuple(dict.fromkeys(names))
