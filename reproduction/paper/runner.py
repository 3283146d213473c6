"""Regenerate figures: simulate, judge the claims, draw the figure and write the page. Finished figures are skipped.

OUT/index.html           the page, with the table of claims at its top
OUT/NAME/trials.csv      a row per resample, setting and estimator
OUT/NAME/claims.json     the claims with their verdicts, and the settings of the run
OUT/NAME/example.npz     the maps that are drawn
OUT/NAME/figure.png      the figure
OUT/NAME/checkpoints/    finished resamples, from which an interrupted run is resumed
"""

import inspect
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.paper import FigureModule, costs, load_figure, page, select_figures
from reproduction.paper.claims import ARITHMETIC, Claim
from vseg import __version__
from vseg._support.atomic_files import write_text
from vseg.errors import Conflict, InvalidInput
from vseg.sweeps import Table, open_workers, sweep
from vseg.sweeps.repetitions import expand_settings
from vseg.sweeps.workers import Workers

RESAMPLES, QUICK_RESAMPLES = 1000, 20
MIN_RESAMPLES = 5  # for settings that get only a share of the resamples

MISMATCHES = {
    "version": "another version of vseg",
    "format": "another file format",
    "seed": "another seed",
    "data": "other data",
}

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class FigureResult:
    """The content of a figure's claims.json.

    Attributes
    ----------
    name : str
        The figure.
    seconds : float
        Duration of the run.
    fewest : int
        Resamples of the setting with the fewest.
    claims : list of dict
        The claims with their verdicts.
    fresh : bool
        False if the figure was finished by an earlier run.
    """

    name: str
    seconds: float
    fewest: int
    claims: list[dict[str, str]]
    fresh: bool


def run(
    names: Iterable[str],
    *,
    resamples: int = RESAMPLES,
    executor: str | Executor | None = None,
    out: str | Path = "paper",
    seed: int = 0,
    data: str | Path | None = None,
    progress: Callable[[float], None] | None = None,
    on_finished: Callable[[FigureResult], None] | None = None,
) -> list[FigureResult]:
    """Regenerate figures of the paper.

    Parameters
    ----------
    names : iterable of str
        Figures, or "all".
    resamples : int
        Number of resamples of pairs and answers; figures with slow fits get a stated share of it.
    executor : str or Executor, optional
        Where the work is done, as in `vseg.sweeps.sweep`; the numbers do not depend on it.
    out : path
        Output folder. Figures that are finished in it are not run again; interrupted ones are resumed.
    seed : int
        Random seed.
    data : path, optional
        A copy of BSDS500, whose annotators become observers of the natural images.
    progress : callable, optional
        Called with the seconds of work done since the last call, in the units of `estimate_seconds`.
    on_finished : callable, optional
        Called with the result of each figure when it is finished.

    Returns
    -------
    list of FigureResult
        In the paper's order.

    Examples
    --------
    >>> run(["blocks"], resamples=20, out="paper")  # doctest: +SKIP
    """
    wanted, folder = select_figures(names), Path(out)
    if not isinstance(resamples, (int, np.integer)) or resamples < 1:
        raise InvalidInput(f"Expected a whole number of resamples from 1 up, got {resamples!r}.")
    if folder.exists() and not folder.is_dir():
        raise Conflict(
            f"{folder} is a file; expected a folder for the figures, or a path that does not exist yet."
        )
    data = None if data is None else Path(data).resolve()
    requested = {name: _run_settings(name, int(resamples), int(seed), data) for name in wanted}
    left = [name for name in wanted if not _is_finished(folder / name, requested[name])]
    results = {name: _read_result(folder / name, fresh=False) for name in wanted if name not in left}
    for name in results:
        _report_progress(progress, estimate_seconds([name], resamples=resamples, data=data))
    if left:
        with open_workers(executor) as workers:
            for name in left:
                results[name] = _run_figure(name, folder / name, requested[name], data, workers, progress)
                page.write_page(folder)
                if on_finished:
                    on_finished(results[name])
    page.write_page(folder)
    return [results[name] for name in wanted]


def estimate_seconds(names: Iterable[str], *, resamples: int, data: str | Path | None = None) -> float:
    """Return the approximate CPU seconds that these figures take, for the progress bar."""
    return sum(
        _seconds_per_trial(name, data) * _count_trials(load_figure(name), resamples, data)
        for name in select_figures(names)
    )


def _run_figure(
    name: str,
    folder: Path,
    settings: dict[str, Any],
    data: str | Path | None,
    workers: Workers,
    progress: Callable[[float], None] | None,
) -> FigureResult:
    began, module = time.perf_counter(), load_figure(name)
    folder.mkdir(parents=True, exist_ok=True)
    seconds_per_trial = _seconds_per_trial(name, data)
    rows: list[dict[str, Any]] = []
    groups = _group_by_resamples(module, settings["resamples"], data)
    for number, (repeats, group) in enumerate(groups):
        part = sweep(
            module.trial,
            group,
            repeats=repeats,
            seed=int(np.random.SeedSequence(settings["seed"], spawn_key=(number,)).generate_state(1)[0]),
            executor=workers,
            checkpoint=folder / "checkpoints" / str(number),
            progress=lambda done: _report_progress(progress, done * seconds_per_trial),
        )
        rows += part.rows
    table = Table(rows)
    # Claims of an earlier run with fewer resamples must not stay beside the new numbers.
    (folder / "claims.json").unlink(missing_ok=True)
    table.save(folder / "trials.csv")
    example = _make_example(module, settings["seed"], data)
    np.savez_compressed(folder / "example.npz", **example)
    resampled = _describe_resamples(module, settings["resamples"], data)
    claims = [
        claim.as_dict() | {"settings": _describe_run(claim, resampled)} for claim in module.claims(table)
    ]
    module.draw(table, example).savefig(folder / "figure.png")
    content = {
        "format": page.FORMAT,
        "name": name,
        "title": module.TITLE,
        "where": module.WHERE,
        **settings,
        "resampled": resampled,
        "fewest": min(repeats for repeats, _ in groups),
        "seconds": round(time.perf_counter() - began, 3),
        "worked": round(_sum_work_seconds(folder, groups), 3),
        "pytorch": costs.time_pytorch(module, groups, settings["resamples"], seed=settings["seed"]),
        "claims": claims,
    }
    # Written last: this file marks the figure as finished.
    write_text(folder / "claims.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return _read_result(folder, fresh=True)


def _sum_work_seconds(folder: Path, groups: Sequence[tuple[int, Any]]) -> float:
    """Sum the work seconds of the requested resamples over all runs; the checkpoint may hold more resamples."""
    total = 0.0
    for number, (repeats, _) in enumerate(groups):
        for line in (folder / "checkpoints" / str(number) / "trials.jsonl").read_text("utf-8").splitlines():
            _, repeat, _, seconds = json.loads(line)
            total += seconds if repeat < repeats else 0
    return total


def _group_by_resamples(
    module: FigureModule, resamples: int, data: str | Path | None
) -> list[tuple[int, list[Setting]]]:
    """Group the settings by their number of resamples; return (resamples, settings) tuples."""
    groups: dict[float, list[Setting]] = {}
    for setting in _expand_settings(module, data):
        share = module.share(**setting) if hasattr(module, "share") else getattr(module, "SHARE", 1.0)
        groups.setdefault(share, []).append(setting)
    least = min(resamples, getattr(module, "MIN_RESAMPLES", MIN_RESAMPLES))
    return [(max(math.ceil(resamples * share - 1e-9), least), settings) for share, settings in groups.items()]


def _expand_settings(module: FigureModule, data: str | Path | None) -> list[Setting]:
    if hasattr(module, "settings"):
        return expand_settings(module.settings(None if data is None else Path(data)))  # type: ignore[return-value]
    return expand_settings(module.SETTINGS)  # type: ignore[return-value]


def _count_trials(module: FigureModule, resamples: int, data: str | Path | None) -> int:
    return sum(repeats * len(settings) for repeats, settings in _group_by_resamples(module, resamples, data))


def _seconds_per_trial(name: str, data: str | Path | None) -> float:
    return costs.CPU_SECONDS.get(name, 100.0) / _count_trials(load_figure(name), RESAMPLES, data)


def _make_example(module: FigureModule, seed: int, data: str | Path | None) -> dict[str, Any]:
    arguments = {"data": None if data is None else Path(data)} if _takes_data(module) else {}
    return module.example(seed=seed, **arguments)


def _takes_data(module: FigureModule) -> bool:
    return "data" in inspect.signature(module.example).parameters


def _describe_resamples(module: FigureModule, resamples: int, data: str | Path | None) -> str:
    """Describe how many resamples each setting gets."""
    groups = _group_by_resamples(module, resamples, data)
    if len(groups) == 1:
        return f"{groups[0][0]} resamples of each setting"
    if all("fits" in setting for _, settings in groups for setting in settings):
        return _describe_parts(groups)
    return ", ".join(f"{repeats} resamples of {_describe_settings(settings)}" for repeats, settings in groups)


def _describe_run(claim: Claim, resampled: str) -> str:
    """Return the settings of a claim with the number of resamples."""
    if claim.settings == ARITHMETIC:
        return claim.settings
    return "; ".join(filter(None, (claim.settings, resampled)))


def _describe_parts(groups: Sequence[tuple[int, list[Setting]]]) -> str:
    """Describe the resamples of fast fits, and of slow ones with the settings that tell them apart."""
    fast, *slow = groups
    named = [
        f"{repeats} of slower ones"
        + ("" if len(slow) == 1 else " with " + _describe_settings([_without_part(one) for one in settings]))
        for repeats, settings in slow
    ]
    return ", ".join([f"{fast[0]} resamples of fits under 50 ms", *named])


def _without_part(setting: Setting) -> Setting:
    return {name: value for name, value in setting.items() if name != "fits"}


def _describe_settings(settings: Sequence[Setting]) -> str:
    return " and ".join(
        " ".join(f"{name} {value}" for name, value in setting.items()) for setting in settings
    )


def _is_finished(folder: Path, settings: Mapping[str, Any]) -> bool:
    """Return whether the folder holds this figure with at least as many resamples.

    Raise Conflict, and change nothing, if it holds results of another version or of other settings.
    """
    path = folder / "claims.json"
    if not path.is_file():
        return False
    content = _read_claims_file(path)
    expected = {**settings, "format": page.FORMAT}
    for name, mismatch in MISMATCHES.items():
        if content.get(name) != expected[name]:
            raise Conflict(
                f"{folder} holds results of {mismatch} ({content.get(name)}, not {expected[name]}), which are not "
                "overwritten; choose another output folder, or delete that folder to start over.",
                reason=name,
            )
    return bool(content.get("resamples", 0) >= settings["resamples"] and (folder / "figure.png").is_file())


def _read_result(folder: Path, *, fresh: bool) -> FigureResult:
    content = _read_claims_file(folder / "claims.json")
    return FigureResult(content["name"], content["seconds"], content["fewest"], content["claims"], fresh)


def _read_claims_file(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        content["name"], content["claims"], content["seconds"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Conflict(
            f"{path} was not written by a run of the paper's figures ({error!r:.60}); "
            "choose another folder, or delete that one."
        ) from error
    return content


def _run_settings(name: str, resamples: int, seed: int, data: Path | None) -> dict[str, Any]:
    """Return the settings that a finished figure must match; `data` is ignored for figures that do not use it."""
    data_used = "" if data is None or not _takes_data(load_figure(name)) else str(data)
    return {"version": __version__, "resamples": resamples, "seed": seed, "data": data_used}


def _report_progress(progress: Callable[[float], None] | None, seconds: float) -> None:
    if progress:
        progress(seconds)
