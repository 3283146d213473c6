"""What `vseg models` writes: parameters, tables and figures."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vseg._support.text import safe_folder_names

if TYPE_CHECKING:
    from vseg.data.maps import Maps
    from vseg.evaluation.compare import ModelComparison
    from vseg.evaluation.fit_jobs import FitOutcome
    from vseg.evaluation.human_maps import MapsByGroup
    from vseg.models.task import Task

FINISHED = "table.md"
FIT_FILES = {"parameters.json", "maps", "maps.png", "calibration.png"}
MOST_ROWS = 6  # of maps side by side


def write_scores(out: Path, task: "Task", found: "Comparison") -> None:
    """Tables and figures of a comparison."""
    from vseg import figures

    out.mkdir(parents=True, exist_ok=True)
    (out / "table.csv").write_text(found.csv(), encoding="utf-8")
    (out / "scores.json").write_text(found.json(), encoding="utf-8")
    table = found.table()
    figures.forest(table, found.ceilings()).savefig(out / "forest.png")
    curves = {row["model"]: found.calibration(row["model"]) for row in table}
    figures.calibration(curves).savefig(out / "calibration.png")
    maps = {row["model"]: found.maps[row["model"]] for row in table if row["model"] in found.maps}
    if maps:
        _draw_maps(out / "maps.png", task, {"people": found.people, **maps}, found.per)
    (out / FINISHED).write_text(found.markdown(), encoding="utf-8")  # last: it tells that all is there


def write_fits(
    folder: Path, task: "Task", model: str, per: str, fits: "Mapping[str, Told]", people: "Drawn"
) -> None:
    """Parameters, maps and figures of one model fitted to all answers of each group."""
    import numpy as np

    from vseg import figures
    from vseg.evaluation.folds import group_rows
    from vseg.evaluation.scores import bits, compute_calibration

    groups = group_rows(task.responses, per, "pairs")  # type: ignore[arg-type]
    told: dict[str, dict[str, Any]] = {}
    for group, fit in fits.items():
        score = float(bits(fit.q, task.responses.same[groups[group]]).mean())
        told[group] = {"answers": len(fit.q), "bits_fitted": score, "parameters": fit.parameters}
    content = {"model": model, "per": per, "segments": task.segments, "fits": told}
    (folder / "parameters.json").write_text(
        json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    said = np.concatenate([fit.q for fit in fits.values()])
    same = np.concatenate([task.responses.same[groups[group]] for group in fits])
    figures.calibration({model: compute_calibration(said, same)}).savefig(folder / "calibration.png")
    maps = {(group, image): each for group, fit in fits.items() for image, each in fit.maps.items()}
    if maps:
        _save_maps(folder / "maps", maps)
        _draw_maps(folder / "maps.png", task, {"people": people, model: maps}, per)


def _save_maps(folder: Path, maps: "Drawn") -> None:
    groups = safe_folder_names(dict.fromkeys(group for group, _ in maps))
    images = safe_folder_names(dict.fromkeys(image for _, image in maps))
    for (group, image), each in maps.items():
        (folder / groups[group]).mkdir(parents=True, exist_ok=True)
        each.save(folder / groups[group] / f"{images[image]}.npz")


def _draw_maps(path: Path, task: "Task", maps: "Mapping[str, Drawn]", per: str) -> None:
    """Models beside people: every image first for one group, then for the next, as far as there is room."""
    from vseg import figures

    rows: dict[str, dict[str, Maps]] = {}
    pictures = {}
    for group, image in _in_turns({key for each in maps.values() for key in each})[:MOST_ROWS]:
        name = f"{group}\n{image}" if per == "participant" else image
        rows[name] = {model: each[group, image] for model, each in maps.items() if (group, image) in each}
        if image in task.images:
            pictures[name] = task.images[image]
    figures.side_by_side(rows, pictures).savefig(path)


def _in_turns(keys: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """(group, image), all images of the first group that saw them before those of the second."""
    turns: dict[str, int] = {}
    ranked = []
    for group, image in sorted(keys):
        turns[image] = turns.get(image, -1) + 1
        ranked.append((turns[image], image, group))
    return [(group, image) for _, image, group in sorted(ranked)]
