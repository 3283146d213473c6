"""The demonstration, with fewer people: its report, its data, and why the second texture is uncertain."""

import os
import re
from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from vseg import Grid, Maps, demo, load
from vseg.cli import main
from vseg.image_observers import (
    estimate_spread_deg,
    measure_orientations_deg,
    simulate_annotation,
    simulate_beliefs,
)
from vseg.stimuli import HIGH, LOW, composite, load_sample


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "out"
    done: list[int] = []
    report = demo.run_demo(folder, seed=0, participants=4, segments=[2, 3], progress=done.append)
    assert report == folder / "report.html"
    assert sum(done) == demo.count_steps(4, [2, 3])
    return folder


def test_the_report_says_what_was_found(out):
    page = (out / "report.html").read_text(encoding="utf-8")
    text = unescape(re.sub(r"<[^>]+>", " ", re.sub(r'src="[^"]+"', "", page)))
    for expected in (
        "simulated", "242 pairs on an 11x11 grid", "Welch t(", "Cohen's d = ", "mean entropy (nats)",
        "1024 pairs on a 16x16 grid", "session of 128 pairs", "The likelihood chooses K = ", "seed 0",
    ):  # fmt: skip
        assert expected in text
    assert page.count("<img") == page.count('alt="') == 19
    assert "http" not in re.sub(r'src="[^"]+"', "", page)


def test_the_data_lie_beside_it(out):
    for name in ("texture-low", "texture-high"):
        responses = load(out / name / "responses.csv", Grid(11))
        assert (len(responses), len(responses.participants)) == (4 * 5 * 242, 4)
        assert (
            Maps.load(out / name / "truth.npz").segments == Maps.load(out / name / "maps.npz").segments == 2
        )
    photograph = load(out / "photograph/responses.csv", Grid(16))
    assert (len(photograph), len(photograph.tally()), len(photograph.participants)) == (1024, 1024, 8)


def test_its_commands_are_the_ones_to_type(out, monkeypatch):
    """The first command of the report, with a name of its own for the folder."""
    monkeypatch.chdir(out)
    page = (out / "report.html").read_text(encoding="utf-8")
    block = re.search(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)
    assert block is not None
    first, second = block[1].replace("\\\n", " ").splitlines()[:2]
    for line in (first, second):
        with pytest.raises(SystemExit) as ended:
            main(line.split()[1:])
        assert ended.value.code == 0
    assert "my-texture-low" in os.listdir()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_wider_texture_is_more_uncertain_because_of_its_pixels(seed):
    """Same people, same areas: only the image differs."""
    grid = Grid(11)
    low, high = (
        simulate_beliefs(
            composite(preset=preset, seed=seed), grid, seed=np.random.SeedSequence(9)
        ).mean_entropy
        for preset in (LOW, HIGH)
    )
    assert high > 1.2 * low


def test_orientations_are_seen_in_the_texture():
    """Away from the border, on most locations, the nearer of ±5° is the right one."""
    stimulus, grid = composite(preset=LOW, seed=0), Grid(11)
    seen = measure_orientations_deg(stimulus.image, grid)
    assert np.mean((seen > 0) == stimulus.truth_maps(grid).labels) > 0.9


def test_spread_is_found_without_labels():
    rng = np.random.default_rng(0)
    seen = np.repeat([-5.0, 5.0], 5000) + 3 * rng.standard_normal(10_000)
    assert estimate_spread_deg(seen, np.array([-5.0, 5.0])) == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize("segments", [3, 4, 5])
def test_annotators_use_all_their_segments_and_disagree(segments):
    """Colour alone or compact areas: the weight of the position is what they differ in."""
    image = load_sample("coffee")
    one, again, other = (
        simulate_annotation(image, Grid(16), segments, place, np.random.SeedSequence(1))
        for place in (0.3, 0.3, 0.9)
    )
    assert one == again
    assert one.segments_won == other.segments_won == segments
    assert 0.02 < np.mean(one.labels != other.align_to(one).labels) < 0.5


def test_the_command_takes_the_next_free_folder(tmp_path, monkeypatch, capsys):
    """The real demonstration, with fewer people."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "run_demo", partial(demo.run_demo, participants=2, segments=[2]))
    Path("vseg-demo").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--report-only", "--no-browser"])
    report = tmp_path.resolve() / "vseg-demo-2" / "report.html"
    assert (ended.value.code, capsys.readouterr()) == (0, (f"Report: {report}\n", ""))
    assert report.is_file()
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--report-only", "--no-browser", "--out", "vseg-demo"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("vseg: vseg-demo exists; choose another --out")
    assert sorted(os.listdir()) == ["vseg-demo", "vseg-demo-2"]
