"""plan_study(): how many trials and participants a study needs, by simulating it."""

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from vseg._support.progress import Progress
from vseg.errors import InvalidInput, VsegWarning
from vseg.planning.assumptions import PLANNED_DESIGNS, Assumptions
from vseg.planning.forecast_table import Forecast
from vseg.planning.forecasting import (
    DEFAULT_METHODS,
    DEFAULT_PARTICIPANTS,
    DEFAULT_REPEATS,
    forecast,
    minimum_trials,
)
from vseg.study.schema import Study, load_study
from vseg.sweeps import Table
from vseg.sweeps.workers import Workers

FILES = ("people.csv", "plan.png", "summary.json", "table.csv")
DEFAULT_GRID, DEFAULT_SEGMENTS = 11, 2


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """What a study would find, as `plan_study` returns it; `str` is its table and advice as text.

    Attributes
    ----------
    forecast : Forecast
    """

    forecast: Forecast

    @property
    def table(self) -> Table:
        """A row for each method, number of trials and number of participants, see `Forecast.table`."""
        return self.forecast.table

    @property
    def advice(self) -> str:
        """One sentence: the smallest study with each method."""
        return self.forecast.advice

    def __str__(self) -> str:
        return "\n".join([*self._table_lines(), "", self.advice])

    def save(self, folder: str | Path) -> None:
        """Write table.csv, people.csv, summary.json and plan.png into a folder, which is created if necessary."""
        from vseg.figures.planning import forecast as draw_forecast

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.forecast.save(folder)
        draw_forecast(self.forecast).savefig(folder / "plan.png")

    def _table_lines(self) -> Iterator[str]:
        """Yield a line for each method and number of trials, with power, or the mean's error, by participants."""
        has_power = self.forecast.assumptions.against is not None
        column, digits = ("power", 2) if has_power else ("mean_error", 3)
        title = "power" if has_power else "error of the mean entropy"
        sizes = self.forecast.participants
        head = f"{'':<11}{'trials':>6} {'minutes':>8} {'map error':>10} {'entropy error':>14}"
        yield f"{'':<{len(head)}}   {f'{title} with … participants':>{7 * len(sizes)}}"
        yield f"{head}   {''.join(f'{size:>7}' for size in sizes)}"
        for (method, trials), part in self.table.groups(["method", "trials"]).items():
            first = part.rows[0]
            numbers = "".join(f"{row[column]:>7.{digits}f}" for row in part.rows)
            yield (
                f"{method:<11}{trials:>6} {first['minutes_each']:>8.0f} {first['error']:>10.3f} "
                f"{first['entropy_error']:>14.3f}   {numbers}"
            )


def plan_study(
    study: str | Path | Study | None = None,
    *,
    grid: int | None = None,
    segments: int | None = None,
    entropy: float = 0.2,
    against: float | None = None,
    spread: float | None = None,
    lapse: float = 0.02,
    smoothness: str | float = "auto",
    trials: Sequence[int] | None = None,
    participants: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    repeats: int = DEFAULT_REPEATS,
    executor: str | Executor | Workers | None = None,
    seed: int,
    progress: Progress | None = None,
) -> StudyPlan:
    """Forecast by simulation what a study would find, by trials and participants.

    This is what `vseg plan` runs. It gives the error of the maps, of a participant's mean entropy and, with `against`,
    the power of Welch's test (5 %) to tell two conditions apart, by the paper's method and by the posterior, with the
    minutes that participants spend.

    Parameters
    ----------
    study : str, Path or Study, optional
        A study file, or a study: its grid, segments, design, trials, participants and timing.
    grid : int, optional
        Without a study: the number of locations along a side, by default 11.
    segments : int, optional
        Without a study: the number of segments, by default 2.
    entropy : float
        Assumed mean entropy of a participant's maps in nats, 0 to log K.
    against : float, optional
        The same in a second condition, which is to be told apart from the first.
    spread : float, optional
        Assumed standard deviation of the mean entropy between participants; by default a third of the entropy.
    lapse : float
        Assumed share of trials answered without looking.
    smoothness : "auto" or float
        λ of the paper's method.
    trials : sequence of int, optional
        Numbers of trials of a participant; by default a quarter, half and all of the study's, or half, one and two and
        a half times the advised number of answers.
    participants : sequence of int, optional
        Numbers of participants in each condition; by default 5, 10, 15 and 30, and those of the study.
    methods : sequence of "paper", "posterior", "adaptive", optional
        By default the first two, and "adaptive", which takes much longer, for an adaptive study.
    repeats : int
        Participants simulated in each condition.
    executor : str, Executor or None
        Where to simulate, as in `vseg.sweep`; the numbers do not depend on it.
    seed : int
        Another seed simulates other participants.
    progress : function, optional
        Called with the number of participants simulated since the last call.

    Returns
    -------
    StudyPlan
        With `table`, `advice` and `save(folder)`, which writes what `vseg plan` writes.

    Examples
    --------
    >>> import vseg
    >>> plan = vseg.plan_study(grid=4, against=0.5, trials=[32], participants=[5, 20], repeats=10, seed=0)
    >>> print(plan.advice)  # doctest: +ELLIPSIS
    To tell 0.2 from 0.5 nats with power 0.8, the paper's method needs 32 trials from each of ...
    """
    template = _describe_study(study, grid, segments)
    assumptions = Assumptions(
        grid=template.grid,
        segments=template.segments,
        entropy=entropy,
        against=against,
        spread=spread,
        lapse=lapse,
        design=template.design,
        smoothness=smoothness,
    )
    return StudyPlan(
        forecast(
            assumptions,
            trials=template.trials if trials is None else trials,
            participants=template.participants if participants is None else participants,
            methods=template.methods if methods is None else methods,
            repeats=repeats,
            study=template.study,
            executor=executor,
            progress=progress,
            seed=seed,
        )
    )


@dataclass(frozen=True)
class _StudyTemplate:
    """What a forecast takes from a study, or from its grid and number of segments alone."""

    grid: int
    segments: int
    design: str = "covering"
    trials: tuple[int, ...] | None = None
    participants: tuple[int, ...] = DEFAULT_PARTICIPANTS
    methods: tuple[str, ...] = DEFAULT_METHODS
    study: Study | None = None


def _describe_study(
    source: str | Path | Study | None, grid: int | None, segments: int | None
) -> _StudyTemplate:
    if source is None:
        return _StudyTemplate(
            DEFAULT_GRID if grid is None else grid, DEFAULT_SEGMENTS if segments is None else segments
        )
    name = source.name if isinstance(source, Study) else str(source)
    for parameter, given in (("grid", grid), ("segments", segments)):
        if given is not None:
            raise InvalidInput(f"{name} fixes {parameter}; leave out {parameter}, or the study.")
    study = source if isinstance(source, Study) else load_study(source)
    if study.layout.grid is None:
        raise InvalidInput(f"{name} has a layout of points; only grids can be planned: give a grid instead.")
    for difference in _list_differences(study):
        warnings.warn(f"{name} {difference}", VsegWarning, stacklevel=3)
    trials = study.design.blocks * -(-study.pairs_per_block // study.design.split)
    fewest = minimum_trials(study.layout.grid)
    participants = max(min(study.quota(image.name) for image in study.images), 2)
    return _StudyTemplate(
        grid=study.layout.grid,
        segments=study.planned_segments,
        design=study.design.name if study.design.name in PLANNED_DESIGNS else "covering",
        trials=tuple(sorted({max(trials // part, fewest) for part in (4, 2, 1)})),
        participants=tuple(sorted({*DEFAULT_PARTICIPANTS, participants})),
        methods=(*DEFAULT_METHODS, "adaptive") if study.design.is_adaptive else DEFAULT_METHODS,
        study=study,
    )


def _list_differences(study: Study) -> Iterator[str]:
    """Yield the ways in which a study differs from what is simulated."""
    if study.segments == "free":
        yield f"leaves the number of segments free; here participants see {study.planned_segments}."
    if study.images_per_participant > 1:
        yield (
            f"shows each participant {study.images_per_participant} images; trials and minutes here are those of one "
            "image, and two conditions are taken as seen by different participants."
        )
    if study.design.shared:
        yield "chooses pairs from everyone's answers together; here they are chosen for each participant alone."
    if study.design.rule not in (None, "variance_reduction"):
        yield f"chooses pairs by the rule {study.design.rule}; here they are chosen by variance_reduction."
