"""The choices of a study are made again from its export alone: same answers, same seeds, same pairs."""

from pathlib import Path

import pytest

from servers import RunningServer, run_server
from vseg import bots, export, load, store
from vseg.adaptive.replay import replay
from vseg.errors import InvalidInput

pytestmark = pytest.mark.slow

STUDY = """
name = "ada"
segments = 2
participants = 20
layout = {{grid = 5}}
images = [{{name = "patches", colours = 2}}, {{name = "others", colours = 2, seed = 1}}]
assignment = {{images = "within"}}
design = {{name = "adaptive", trials = 60{more}}}
practice = {{trials = 2}}
catch = {{per_block = 1}}
"""
SOLO, SHARED = STUDY.format(more=""), STUDY.format(more=", shared = true")
STOPPING = STUDY.format(more=", target_error = 0.9, least_trials = 25")


def export_study(server: RunningServer, folder: Path) -> Path:
    folder.mkdir()
    export.write_dataset(server.db, store.studies.get_study(server.db, "ada"), folder)
    return folder


def simulate(server: RunningServer, count: int, seed: int) -> None:
    bots.run_bots(f"{server.base}s/ada/", count=count, at_once=count, flagged=0.1, seed=seed)


@pytest.mark.parametrize("text", [SOLO, SHARED, STOPPING], ids=["solo", "shared", "stopping"])
def test_every_choice_follows_from_the_exported_answers(tmp_path, text):
    """Two participants at once, with flagged answers; then another server, which reads everything from the database."""
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server(url, text) as first:
        simulate(first, 2, seed=0)
    with run_server(url, text) as second:
        simulate(second, 1, seed=1)
        folder = export_study(second, tmp_path / "out")
    batches = list(replay(folder))
    assert len(batches) >= 3
    assert {batch.image for batch in batches} == {"patches", "others"}
    assert all(batch.is_same for batch in batches)
    assert len(load(folder)) > 3 * 2 * 20


def test_other_answers_give_other_pairs(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", SOLO) as server:
        simulate(server, 1, seed=0)
        folder = export_study(server, tmp_path / "out")
    (table,) = (path for path in (folder / "data").glob("*_session-*_data.csv") if "events" not in path.name)
    header, *rows = table.read_text().splitlines()
    same = header.split(",").index("same")
    reversed_rows = [
        [*cells[:same], "01"[cells[same] == "0"], *cells[same + 1 :]]
        for cells in (row.split(",") for row in rows)
    ]
    table.write_text("\n".join([header, *map(",".join, reversed_rows), ""]))
    assert not all(batch.is_same for batch in replay(folder))


def test_batches_that_rest_on_erased_answers_cannot_be_replayed(tmp_path):
    url = f"sqlite:///{tmp_path}/vseg.db"
    with run_server(url, SHARED) as server:
        simulate(server, 2, seed=0)
        row = store.studies.get_study(server.db, "ada")
        store.sessions.erase(server.db, row, store.sessions.list_sessions(server.db, row)[0]["participant"])
        simulate(server, 1, seed=1)
        batches = list(replay(export_study(server, tmp_path / "out")))
    assert any(batch.repeated is None for batch in batches)
    last = max(batches, key=lambda batch: batch.batch)
    after = [batch for batch in batches if batch.session == last.session]
    assert all(batch.is_same for batch in after), "later choices rest on answers that are still there"


def test_a_study_that_is_not_adaptive_cannot_be_replayed(tmp_path):
    plain = SOLO.replace('name = "adaptive", ', "")
    with (
        run_server(f"sqlite:///{tmp_path}/vseg.db", plain) as server,
        pytest.raises(InvalidInput, match="adaptive"),
    ):
        list(replay(export_study(server, tmp_path / "out")))
