"""run(): numbers first, then the figures drawn from them, then the page; what is finished is not done again.

OUT/index.html           the page, with the table of claims at its top
OUT/NAME/trials.csv      a row a resample, setting and estimator
OUT/NAME/claims.json     the claims with their verdicts, and how they came about
OUT/NAME/example.npz     the maps that are drawn
OUT/NAME/figure.png      the figure
OUT/NAME/kept/           finished resamples, from which a run that was cut goes on
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

from reproduction.paper import chosen, costs, figure, page
from vseg import __version__
from vseg._support.atomic_files import write_text
from vseg.errors import Conflict, InvalidInput
from vseg.sweeps import Table, open_workers, sweep
from vseg.sweeps.trials import expand_settings

RESAMPLES, QUICK = 1000, 20
FEWEST = 5  # resamples of a setting that gets only a share of them

KINDS = {
    "version": "another version of vseg",
    "format": "an earlier form",
    "seed": "another seed",
    "data": "other data",
}

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One figure, as run: what its claims.json says; `fewest` are the resamples of the setting that got least."""

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
    told: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Regenerate figures of the paper.

    Parameters
    ----------
    names : of figures, or "all"
    resamples : int
        How often pairs and answers are drawn anew; figures whose fits are slow get a stated share of it.
    executor : where the work is done, as in `vseg.sweeps.sweep`; the numbers do not depend on it
    out : folder
        Figures that are finished in it are not run again, and one that was cut short goes on.
    data : folder, optional
        A copy of BSDS500, whose annotators become observers of the natural images.
    progress : called with the seconds of work that were done since the last call, as `planned` counts them
    told : called with each figure as it is finished

    Examples
    --------
    >>> run(["blocks"], resamples=20, out="paper")  # doctest: +SKIP
    """
    wanted, folder = chosen(names), Path(out)
    if not isinstance(resamples, (int, np.integer)) or resamples < 1:
        raise InvalidInput(f"The number of resamples is a whole number from 1 up, got {resamples!r}.")
    if folder.exists() and not folder.is_dir():
        raise Conflict(f"{folder} is a file; expected a folder for the figures, or none yet.")
    data = None if data is None else Path(data).resolve()
    asked = {name: _asked(name, int(resamples), int(seed), data) for name in wanted}
    left = [name for name in wanted if not _finished(folder / name, asked[name])]
    outcomes = {name: _read(folder / name, fresh=False) for name in wanted if name not in left}
    for name in outcomes:
        _advance(progress, planned([name], resamples=resamples, data=data))
    if left:
        with open_workers(executor) as place:
            for name in left:
                outcomes[name] = _run_one(name, folder / name, asked[name], data, place, progress)
                page.write(folder)
                if told:
                    told(outcomes[name])
    page.write(folder)
    return [outcomes[name] for name in wanted]


def planned(names: Iterable[str], *, resamples: int, data: str | Path | None = None) -> float:
    """CPU seconds that these figures take, roughly: for a bar with the time that is left."""
    return sum(
        _cost_of_a_trial(name, data) * _trials(figure(name), resamples, data) for name in chosen(names)
    )


def _run_one(
    name: str,
    folder: Path,
    asked: dict[str, Any],
    data: str | Path | None,
    executor: Any,
    progress: Callable[[float], None] | None,
) -> Outcome:
    began, module = time.perf_counter(), figure(name)
    folder.mkdir(parents=True, exist_ok=True)
    each = _cost_of_a_trial(name, data)
    rows: list[dict[str, Any]] = []
    groups = _groups(module, asked["resamples"], data)
    for number, (repeats, settings) in enumerate(groups):
        table = sweep(
            module.trial,
            settings,
            repeats=repeats,
            seed=int(np.random.SeedSequence(asked["seed"], spawn_key=(number,)).generate_state(1)[0]),
            executor=executor,
            checkpoint=folder / "kept" / str(number),
            progress=lambda done: _advance(progress, done * each),
        )
        rows += table.rows
    table = Table(rows)
    # One of fewer resamples would stand beside the numbers of these.
    (folder / "claims.json").unlink(missing_ok=True)
    table.save(folder / "trials.csv")
    drawn = _example(module, asked["seed"], data)
    np.savez_compressed(folder / "example.npz", **drawn)
    claims = [claim.as_dict() for claim in module.claims(table)]
    module.draw(table, drawn).savefig(folder / "figure.png")
    about = {
        "format": page.FORMAT,
        "name": name,
        "title": module.TITLE,
        "where": module.WHERE,
        **asked,
        "resampled": _resampled(module, asked["resamples"], data),
        "fewest": min(repeats for repeats, _ in groups),
        "seconds": round(time.perf_counter() - began, 3),
        "worked": round(_worked(folder, groups), 3),
        "pytorch": costs.of(module, groups, asked["resamples"], seed=asked["seed"]),
        "claims": claims,
    }
    # Last: it says that the figure is finished.
    write_text(folder / "claims.json", json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return _read(folder, fresh=True)


def _worked(folder: Path, groups: Sequence[tuple[int, Any]]) -> float:
    """Seconds of work in its resamples, in whichever run they were done; there may be more than were asked for."""
    total = 0.0
    for number, (repeats, _) in enumerate(groups):
        for line in (folder / "kept" / str(number) / "trials.jsonl").read_text("utf-8").splitlines():
            _, repeat, _, seconds = json.loads(line)
            total += seconds if repeat < repeats else 0
    return total


def _groups(module: Any, resamples: int, data: str | Path | None) -> list[tuple[int, list[Setting]]]:
    """The settings that get equally many resamples, with that number."""
    groups: dict[float, list[Setting]] = {}
    for setting in _settings(module, data):
        share = module.share(**setting) if hasattr(module, "share") else getattr(module, "SHARE", 1.0)
        groups.setdefault(share, []).append(setting)
    least = min(resamples, getattr(module, "LEAST", FEWEST))
    return [(max(math.ceil(resamples * share - 1e-9), least), own) for share, own in groups.items()]


def _settings(module: Any, data: str | Path | None) -> list[Setting]:
    if hasattr(module, "settings"):
        return expand_settings(module.settings(None if data is None else Path(data)))  # type: ignore[return-value]
    return expand_settings(module.SETTINGS)  # type: ignore[return-value]


def _trials(module: Any, resamples: int, data: str | Path | None) -> int:
    return sum(repeats * len(settings) for repeats, settings in _groups(module, resamples, data))


def _cost_of_a_trial(name: str, data: str | Path | None) -> float:
    return costs.SECONDS.get(name, 100.0) / _trials(figure(name), RESAMPLES, data)


def _example(module: Any, seed: int, data: str | Path | None) -> dict[str, Any]:
    more = {"data": None if data is None else Path(data)} if _takes_data(module) else {}
    found: dict[str, Any] = module.example(seed=seed, **more)
    return found


def _takes_data(module: Any) -> bool:
    return "data" in inspect.signature(module.example).parameters


def _resampled(module: Any, resamples: int, data: str | Path | None) -> str:
    """How many resamples each setting got, in words."""
    groups = _groups(module, resamples, data)
    if len(groups) == 1:
        return f"{groups[0][0]} resamples of each setting"
    return ", ".join(f"{repeats} resamples of {_spelled(settings)}" for repeats, settings in groups)


def _spelled(settings: Sequence[Setting]) -> str:
    return " and ".join(" ".join(f"{name} {value}" for name, value in one.items()) for one in settings)


def _finished(folder: Path, asked: Mapping[str, Any]) -> bool:
    """Whether this very figure is there, with as many resamples or more.

    What another version or other settings left is not touched.
    """
    path = folder / "claims.json"
    if not path.is_file():
        return False
    there = _content(path)
    asked = {**asked, "format": page.FORMAT}
    for name, what in KINDS.items():
        if there.get(name) != asked[name]:
            raise Conflict(
                f"{folder} holds results of {what} ({there.get(name)}, not {asked[name]}); they are left as they are: "
                "choose another --out, or delete that folder to start over.",
                reason=name,
            )
    return bool(there.get("resamples", 0) >= asked["resamples"] and (folder / "figure.png").is_file())


def _read(folder: Path, *, fresh: bool) -> Outcome:
    there = _content(folder / "claims.json")
    return Outcome(there["name"], there["seconds"], there["fewest"], there["claims"], fresh)


def _content(path: Path) -> dict[str, Any]:
    try:
        there: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        there["name"], there["claims"], there["seconds"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Conflict(
            f"{path} was not written by a run of the paper's figures ({error!r:.60}); "
            "choose another folder, or delete that one."
        ) from error
    return there


def _asked(name: str, resamples: int, seed: int, data: Path | None) -> dict[str, Any]:
    """What a finished figure must be of; other data are nothing to figures that use none."""
    used = "" if data is None or not _takes_data(figure(name)) else str(data)
    return {"version": __version__, "resamples": resamples, "seed": seed, "data": used}


def _advance(progress: Callable[[float], None] | None, seconds: float) -> None:
    if progress:
        progress(seconds)
