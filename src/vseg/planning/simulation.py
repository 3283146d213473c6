"""forecast(): guesses in, simulated people, what a study would find out."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from vseg.designs import recommended_trials
from vseg.errors import InvalidInput
from vseg.planning.assumptions import Guess
from vseg.planning.forecast_table import Forecast
from vseg.planning.methods import METHODS
from vseg.planning.minutes import minutes, study_of
from vseg.planning.simulated_people import person, setting
from vseg.study.schema import Study
from vseg.sweeps import Table, sweep
from vseg.sweeps.workers import Place

PARTICIPANTS = (5, 10, 15, 30)
BLOCKS = (0.5, 1.0, 2.5)  # of KN² trials, unless told
COMPARED = ("paper", "posterior")
REPEATS = 60
FEWEST_REPEATS = 10
FEWEST_TRIALS = 10
MOST_PARTICIPANTS = 1000
KEPT_COLUMNS = (
    "condition", "method", "trials", "error", "true_entropy", "entropy", "entropy_spread", "entropy_error",
)  # fmt: skip


def forecast(
    guess: Guess,
    *,
    trials: Sequence[int] | None = None,
    participants: Sequence[int] = PARTICIPANTS,
    methods: Sequence[str] = COMPARED,
    repeats: int = REPEATS,
    study: Study | None = None,
    executor: str | Executor | Place | None = None,
    kept: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int,
) -> Forecast:
    """What a study would find: errors of maps and entropies, and the power to tell two conditions apart.

    Each of `repeats` people a condition is simulated once, with maps of their own, and asked by every method at every
    number of trials. Power over the number of participants follows by drawing from these people, without new fits.

    Parameters
    ----------
    guess : Guess
    trials : sequence of int, optional
        Trials of one person; by default half, one and two and a half times KN².
    participants : sequence of int
        People in each condition.
    methods : sequence of "paper", "posterior", "adaptive"
        Repeated random pairs and the penalised reconstruction; new pairs at every trial and the posterior; pairs chosen
        from the answers and the posterior (takes a minute or more for ten people).
    repeats : int
        People simulated in each condition.
    study : Study, optional
        Whose timing says how many minutes a person takes.
    executor, kept, progress
        As in `vseg.sweep`; a step of the progress is a person, in both conditions.

    Examples
    --------
    >>> guess = Guess(grid=4, segments=2, entropy=0.1, against=0.4)
    >>> found = forecast(guess, trials=[32], participants=[5, 20], repeats=10, seed=0)
    >>> found.table.columns[:3], len(found.table)
    (('method', 'trials', 'minutes_each'), 4)
    """
    if not isinstance(guess, Guess):
        raise InvalidInput(f"Expected a Guess of the study, got {guess!r:.80}.")
    asked, sizes = _checked_trials(guess, trials), _checked_sizes(participants)
    names = _checked_methods(methods)
    if not isinstance(repeats, (int, np.integer)) or repeats < FEWEST_REPEATS:
        raise InvalidInput(
            f"A forecast simulates {FEWEST_REPEATS} people a condition or more, got {repeats!r}."
        )
    template = study or study_of(guess)
    taken = {count: minutes(template, count) for count in asked}
    rows = sweep(
        person,
        [setting(guess, asked, names)],
        repeats=int(repeats),
        seed=seed,
        executor=executor,
        kept=kept,
        progress=progress,
    ).rows
    people = Table({"repeat": row["repeat"], **{name: row[name] for name in KEPT_COLUMNS}} for row in rows)
    return Forecast(guess, people, sizes, taken, int(seed))


def default_trials(guess: Guess) -> tuple[int, ...]:
    """Half, one and two and a half times KN², but no more than there are pairs."""
    advised, n = recommended_trials(guess.layout, guess.segments), guess.grid**2
    return tuple(
        sorted(
            {max(min(int(share * advised), n * (n - 1) // 2), fewest_trials(guess.grid)) for share in BLOCKS}
        )
    )


def fewest_trials(grid: int) -> int:
    """Those that ask about every location, and enough of them to hold some out for the choice of λ."""
    return max(-(-(grid**2) // 2), FEWEST_TRIALS)


def _checked_trials(guess: Guess, trials: Sequence[int] | None) -> tuple[int, ...]:
    given = default_trials(guess) if trials is None else _counts(trials, "trials", (121, 242))
    fewest, most = fewest_trials(guess.grid), 100 * recommended_trials(guess.layout, guess.segments)
    for count in given:
        if not fewest <= count <= most:
            raise InvalidInput(
                f"A person on {guess.layout} answers {fewest} trials (every location once) to {most}, got {count!r}."
            )
    if not given:
        raise InvalidInput("Expected one number of trials or more, got none.")
    return given


def _checked_sizes(participants: Sequence[int]) -> tuple[int, ...]:
    given = _counts(participants, "participants", PARTICIPANTS)
    for count in given:
        if not 2 <= count <= MOST_PARTICIPANTS:
            raise InvalidInput(f"A condition has 2 to {MOST_PARTICIPANTS} participants, got {count!r}.")
    if not given:
        raise InvalidInput("Expected one number of participants or more, got none.")
    return given


def _counts(given: Any, name: str, such: tuple[int, ...]) -> tuple[int, ...]:
    """Whole numbers from the smallest, each once."""
    counts: list[Any] = list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(count, (int, np.integer)) and not isinstance(count, bool) for count in counts):
        raise InvalidInput(f"Expected whole numbers as {name}, such as {list(such)}, got {given!r}.")
    return tuple(sorted({int(count) for count in counts}))


def _checked_methods(methods: Sequence[str]) -> tuple[str, ...]:
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        raise InvalidInput(f"Expected a list of methods, such as ['paper', 'posterior'], got {methods!r}.")
    given = tuple(methods)
    for name in given:
        if not isinstance(name, str) or name not in METHODS:
            raise InvalidInput(f"Unknown method {name!r}; choose some of {', '.join(METHODS)}.")
    if not given:
        raise InvalidInput(f"Expected one method or more of {', '.join(METHODS)}, got none.")
    return tuple(dict.fromkeys(given))
