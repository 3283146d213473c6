"""Resuming runs, refusing foreign results, and writing the page."""

import json
import shutil
from html.parser import HTMLParser

import pytest

from reproduction.paper import FIGURES, load_figure, page, select_figures
from reproduction.paper.runner import estimate_seconds, run
from vseg.errors import Conflict, InvalidInput, NotFound
from vseg.sweeps import Table

NAME = "deterministic"  # the fastest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "paper"
    return out, run([NAME], resamples=2, out=out)


def test_a_run_writes_numbers_maps_figure_and_page(made):
    out, [outcome] = made
    assert {path.name for path in (out / NAME).iterdir()} == {
        "checkpoints", "claims.json", "example.npz", "figure.png", "trials.csv",
    }  # fmt: skip
    table = Table.load(out / NAME / "trials.csv")
    assert len(table) == 2 * len(load_figure(NAME).ESTIMATORS_COMPARED)
    written = json.loads((out / NAME / "claims.json").read_text("utf-8"))
    judged = [claim.as_dict() for claim in load_figure(NAME).claims(table)]
    assert (
        written["claims"]
        == outcome.claims
        == [{**claim, "settings": f"{claim['settings']}; 2 resamples of each setting"} for claim in judged]
    )
    assert outcome.fresh


def test_the_page_needs_nothing_from_outside(made):
    out, _ = made
    links = Links()
    text = (out / "index.html").read_text("utf-8")
    links.feed(text)
    assert f"{NAME}/figure.png" in links.found
    assert all((out / link).is_file() for link in links.found if not link.startswith("#"))
    assert "<script" not in text
    assert text.index('class="claims"') < text.index(f'id="{NAME}"')


def test_finished_figures_are_not_run_again(made):
    out, _ = made
    before = (out / NAME / "figure.png").stat().st_mtime_ns
    done = []
    [outcome] = run([NAME], resamples=2, out=out, progress=done.append)
    assert not outcome.fresh
    assert (out / NAME / "figure.png").stat().st_mtime_ns == before
    assert sum(done) == pytest.approx(estimate_seconds([NAME], resamples=2))


def test_data_is_ignored_by_figures_without_photographs(made, tmp_path):
    """Otherwise adding BSDS500 later would invalidate all finished figures."""
    out, _ = made
    [outcome] = run([NAME], resamples=2, out=out, data=tmp_path)
    assert not outcome.fresh


def test_a_figure_without_its_picture_is_left_out_of_the_page(tmp_path, made):
    out, _ = made
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "claims.json").write_bytes((out / NAME / "claims.json").read_bytes())
    assert f'id="{NAME}"' not in page.write_page(tmp_path).read_text("utf-8")


def test_interrupted_drawing_leaves_no_outdated_claims(made, tmp_path, monkeypatch):
    out, _ = made
    shutil.copytree(out, tmp_path / "paper")

    def cut(table, example):
        raise KeyboardInterrupt

    monkeypatch.setattr(load_figure(NAME), "draw", cut)
    with pytest.raises(KeyboardInterrupt):
        run([NAME], resamples=3, out=tmp_path / "paper")
    assert len(Table.load(tmp_path / "paper" / NAME / "trials.csv")) == 3 * len(
        load_figure(NAME).ESTIMATORS_COMPARED
    )
    assert not (tmp_path / "paper" / NAME / "claims.json").exists()


def test_the_numbers_do_not_depend_on_the_workers(made, tmp_path):
    out, _ = made
    run([NAME], resamples=2, executor="threads:2", out=tmp_path)
    assert (tmp_path / NAME / "trials.csv").read_bytes() == (out / NAME / "trials.csv").read_bytes()


def test_an_interrupted_run_is_resumed(made, tmp_path):
    out, _ = made

    def cut(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([NAME], resamples=2, out=tmp_path, progress=cut)
    checkpoint = tmp_path / NAME / "checkpoints" / "0" / "trials.jsonl"
    finished = checkpoint.read_text("utf-8").splitlines()
    assert finished
    assert not (tmp_path / NAME / "claims.json").exists()
    run([NAME], resamples=2, out=tmp_path)
    assert checkpoint.read_text("utf-8").splitlines()[: len(finished)] == finished
    assert (tmp_path / NAME / "trials.csv").read_bytes() == (out / NAME / "trials.csv").read_bytes()


def test_work_counts_only_the_requested_resamples(made, tmp_path):
    """The checkpoint may hold more resamples of a longer run."""
    out, _ = made
    shutil.copytree(out, tmp_path / "paper")
    for resamples in (1, 2):
        (tmp_path / "paper" / NAME / "claims.json").unlink()
        run([NAME], resamples=resamples, out=tmp_path / "paper")
        lines = (
            (tmp_path / "paper" / NAME / "checkpoints" / "0" / "trials.jsonl").read_text("utf-8").splitlines()
        )
        held = json.loads((tmp_path / "paper" / NAME / "claims.json").read_text("utf-8"))
        seconds = [took for _, repeat, _, took in map(json.loads, lines) if repeat < resamples]
        assert len(seconds) == resamples
        assert held["worked"] == pytest.approx(sum(seconds), abs=1e-3)


def test_more_resamples_keep_the_earlier_ones(made, tmp_path):
    out, _ = made
    before = Table.load(out / NAME / "trials.csv")
    copy = tmp_path / "paper"
    shutil.copytree(out, copy)
    run([NAME], resamples=3, out=copy)
    after = Table.load(copy / NAME / "trials.csv")
    assert [row for row in after.rows if row["repeat"] < 2] == before.rows
    assert len(after) == 3 * len(before) // 2


@pytest.mark.parametrize("field", ["version", "format", "seed", "data"])
def test_results_of_other_settings_are_not_overwritten(tmp_path, field):
    (tmp_path / NAME).mkdir()
    held = {
        "name": NAME, "claims": [], "seconds": 1.0, "version": "0.1.0", "format": page.FORMAT, "seed": 0, "data": "",
        "resamples": 2,
    }  # fmt: skip
    path = tmp_path / NAME / "claims.json"
    path.write_text(json.dumps({**held, field: "9.9"}), "utf-8")
    before = path.read_bytes()
    with pytest.raises(Conflict, match=r"holds results of (another|other) .* \(9.9, not"):
        run([NAME], resamples=2, out=tmp_path)
    assert path.read_bytes() == before
    assert {each.name for each in tmp_path.rglob("*")} == {NAME, "claims.json"}


def test_bad_input_is_rejected_before_anything_is_written(tmp_path):
    with pytest.raises(NotFound, match=r"no figure 'bloks'; choose .*kernels, a number such as fig2 or s4"):
        run(["blocks", "bloks"], out=tmp_path / "new")
    with pytest.raises(InvalidInput, match="whole number of resamples from 1 up, got 0"):
        run(["blocks"], resamples=0, out=tmp_path / "new")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Conflict, match="is a file; expected a folder"):
        run(["blocks"], out=tmp_path / "file")
    (tmp_path / "damaged" / "blocks").mkdir(parents=True)
    (tmp_path / "damaged" / "blocks" / "claims.json").write_text("{")
    with pytest.raises(Conflict, match="was not written by a run of the paper's figures"):
        run(["blocks"], out=tmp_path / "damaged")
    assert not (tmp_path / "new").exists()


def test_figures_are_found_by_their_numbers():
    assert select_figures(["fig2", "s5"]) == ["losses", "texture"]
    assert select_figures(["s4"]) == ["resolution", "kernels"]
    with pytest.raises(NotFound, match="no figure 'fig12'"):
        select_figures(["fig12"])


def test_the_page_is_copied_into_the_documentation(made, tmp_path):
    out, _ = made
    with pytest.raises(NotFound, match="subfolder pictures"):
        page.write_docs(out, tmp_path)
    with pytest.raises(NotFound, match="no finished figure"):
        page.write_docs(tmp_path, tmp_path)
    (tmp_path / "pictures").mkdir()
    *pictures, text = page.write_docs(out, tmp_path)
    assert [path.name for path in pictures] == [f"paper-{NAME}.png"]
    assert f"](pictures/paper-{NAME}.png)" in text.read_text("utf-8")
    assert "learning rate 0.3" in text.read_text("utf-8")


def test_figures_come_in_the_papers_order():
    assert select_figures(["uncertainty", "blocks", "blocks"]) == ["blocks", "uncertainty"]
    assert select_figures(["all", "blocks"]) == list(FIGURES)


def test_slow_settings_get_a_stated_share_and_never_too_few():
    from reproduction.paper.runner import _describe_resamples, _group_by_resamples

    module = load_figure("resolution")
    assert [repeats for repeats, _ in _group_by_resamples(module, 1000, None)] == [1000, 200, 100, 20]
    assert [repeats for repeats, _ in _group_by_resamples(module, 20, None)] == [20, 5, 5, 5]
    assert _describe_resamples(module, 1000, None) == (
        "1000 resamples of fits under 50 ms, 200 of slower ones with size 16, 100 of slower ones with size 32, 20 of "
        "slower ones with size 64"
    )
    assert _describe_resamples(load_figure("colours"), 1000, None) == (
        "1000 resamples of fits under 50 ms, 50 of slower ones"
    )


def test_the_cost_in_pytorch_is_described():
    timed = {
        "pytorch": {"seconds": 7200.0, "fits": 5000, "compiled": 72.0, "in_full": 259200.0},
        "worked": 600.0,
    }
    said = page.describe_cost([timed, {"pytorch": None, "worked": 5.0}])
    assert "5,000 fits of Algorithm 1 in 1 of these figures would take 2.0 hours" in said
    assert "(3.0 days if every setting" in said
    assert "compiled they take 72 s here, 100 times less" in said
    assert "took 10.0 minutes of work in all" in said
    assert page.describe_cost([{"pytorch": None}]) == ""


class Links(HTMLParser):
    """Collect the links of a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href")]


def test_fewer_resamples_do_not_replace_more(tmp_path):
    out = tmp_path / "paper"
    run(["deterministic"], resamples=3, out=out)
    before = (out / "deterministic" / "trials.csv").read_bytes()
    [again] = run(["deterministic"], resamples=2, out=out)
    assert not again.fresh
    assert again.fewest == 3
    assert (out / "deterministic" / "trials.csv").read_bytes() == before
    assert "3 resamples of each setting. Provisional" in (out / "claims.md").read_text("utf-8")
