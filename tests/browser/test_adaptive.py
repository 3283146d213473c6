"""Test an adaptive study: chosen pairs are shown and stored, also after failures of the page or the server."""

import io

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from vseg import export, store
from vseg.adaptive.replay import replay

STUDY = """
name = "ada"
segments = 2
participants = 10
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
design = {name = "adaptive", trials = 40}
practice = {trials = 0}
catch = {per_block = 1}
calibration = {distance = false, gamma = false}
timing = {preview_ms = 50, cue_ms = 100, image_ms = 100, pause_ms = 300}
display = {full_screen = false}
prolific = {completion_code = "THANKS42"}
"""
"""41 items; the first six pairs are fixed. The pauses give a busy machine time to choose."""


def stored(server):
    with store.open(server.db) as database:
        study = store.studies.get_study(database, "ada")
        return [dict(row) for rows in store.responses.stream_responses(database, study.id) for row in rows]


def replayed(server, folder):
    folder.mkdir()
    with store.open(server.db) as database:
        export.write_dataset(database, store.studies.get_study(database, "ada"), folder)
    return list(replay(folder))


def by_item(rows):
    """Return the pair of each item without catch trials; check that repeated items kept their pair."""
    found = {}
    for row in rows:
        if not row["catch"]:
            pair = row["i"], row["j"], row["chosen"]
            assert found.setdefault(row["item"], pair) == pair
    return found


def test_choices_survive_a_reload_and_a_restart(serve, visitor, tmp_path):
    """Each answer is stored once with its chosen pair, and a replay of the answers gives the same choices."""
    server = serve(STUDY)
    person = visitor(server.url).walk(trials=15)
    person.page.reload()
    person.walk(trials=8)
    server.kill()
    person.walk(trials=1)
    server.start()
    person.walk()
    items = by_item(stored(server))
    assert len(items) == 40
    chosen = [item for item, (_, _, was_chosen) in sorted(items.items()) if was_chosen]
    assert len(chosen) > 20
    batches = replayed(server, tmp_path / "out")
    pairs = {
        item: pair
        for batch in batches
        for item, pair in zip(batch.items, zip(batch.original.i, batch.original.j, strict=True), strict=True)
    }
    assert all(items[item][:2] == pairs[item] for item in chosen)
    assert all(batch.is_same for batch in batches)


@pytest.mark.chaos  # long
def test_network_outage_falls_back_to_fixed_pairs(serve, visitor):
    """Trials do not wait: buffered choices are shown first, then fixed pairs, and both are recorded as such."""
    server = serve(STUDY)
    person = visitor(server.url).walk(trials=12)
    page = person.page
    page.route("**/records", lambda route: route.abort())
    person.walk(trials=22)
    page.unroute("**/records")
    person.walk()
    items = by_item(stored(server))
    assert len(items) == 40
    fixed = person.state["trials"]
    fell_back = [item for item, (_, _, was_chosen) in items.items() if not was_chosen]
    assert all(items[item][:2] == (fixed["i"][item], fixed["j"][item]) for item in fell_back)
    assert len(fell_back) > 6 + 2


@pytest.mark.chaos  # long
def test_screen_shows_the_stored_pair(serve, visitor):
    """The circles on the screen are at the locations of the stored pair."""
    server = serve(STUDY.replace("cue_ms = 100", "cue_ms = 1500"))
    person = visitor(server.url).walk(trials=12)
    page = person.page
    while person.step() != "trial":
        person.take(person.step())
    item = int(page.evaluate("document.body.dataset.item"))
    page.wait_for_timeout(900)  # the pause before the cue, and some of the cue
    seen = find_red_spots(page.screenshot())
    person.walk()
    row = next(row for row in stored(server) if row["item"] == item)
    assert row["chosen"]
    expected = sorted(centre(number) for number in (row["i"], row["j"]))
    offsets = np.array(sorted(seen)) - np.array(expected)
    assert np.abs(offsets - offsets.mean(axis=0)).max() < 4
    fixed = person.state["trials"]
    assert (row["i"], row["j"]) != (fixed["i"][item], fixed["j"][item])


def find_red_spots(png: bytes) -> list[tuple[float, float]]:
    """Return the centres (x, y) of the red spots on the screen."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    red = (pixels[..., 0] > 150) & (pixels[..., 1:].max(axis=2) < 90)
    spots, count = ndimage.label(ndimage.binary_dilation(red, iterations=8))
    return [(x, y) for y, x in ndimage.center_of_mass(red, spots, range(1, count + 1))]


def centre(number: int) -> tuple[float, float]:
    """Return the centre of a location in pixels, on an image of 512 pixels."""
    return 128 * (number % 4) + 64, 128 * (number // 4) + 64


def test_session_ends_early_at_the_target_error(serve, visitor):
    server = serve(STUDY.replace("trials = 40}", "trials = 40, target_error = 0.9, least_trials = 12}"))
    visitor(server.url).walk()
    rows = stored(server)
    assert 12 <= len(by_item(rows)) < 40
    assert {row["status"] for row in rows} == {"completed"}
