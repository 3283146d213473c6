"""`vseg fit` by the posterior, its default method: the files of a fit, with intervals; and the choice of the method."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from commands import files, vseg
from vseg import Maps
from vseg.bayes.posterior import BUDGET, DRAWS
from vseg.evaluation.metrics import label_accuracy

FIT = "fit sim/responses.csv --grid 6 --out fit"


def summary(folder):
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def test_files_and_numbers_of_a_posterior(simulated, here, capsys):
    assert vseg(f"{FIT} --segments 2", capsys)[0] == 0
    found = summary(here / "fit")
    assert found["method"] == "posterior"
    assert found["entropy_low"] < found["mean_entropy"] < found["entropy_high"]
    with np.load("fit/maps.npz") as arrays:
        assert arrays["draws"].shape == (200, 6, 6, 2)
        assert (arrays["lower"] <= arrays["upper"]).all()
    assert (here / "fit/intervals.png").read_bytes().startswith(b"\x89PNG")
    assert label_accuracy(Maps.load("fit/maps.npz"), Maps.load("sim/truth.npz")) > 0.9


def test_k_by_evidence_and_participants_with_the_group_prior(simulated, here, capsys):
    assert vseg(f"{FIT} --segments 2..4 --by participant --prior group --lapses estimate", capsys)[0] == 0
    assert summary(here / "fit")["segments"] == 2
    assert [row["segments"] for row in summary(here / "fit")["segments_table"]][:2] == [2, 3]
    with open("fit/participants.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["participant"] for row in rows] == ["P1", "P2", "P3"]
    assert {"entropies.png", "segments.png"} <= files(here / "fit")
    together = Maps.load("fit/maps.npz")
    for row in rows:
        own = summary(here / "fit" / row["folder"])
        assert (own["prior"], own["kernel"]) == ("group", row["kernel"])
        assert 0 < own["group_share"] == pytest.approx(float(row["group_share"]))
        assert own["settings"] == {"prior": "group", "lapses": "estimate"}
        assert own["entropy_low"] == pytest.approx(float(row["entropy_low"]))
        maps = Maps.load(here / "fit" / row["folder"] / "maps.npz")
        assert (maps.labels == together.labels).mean() > 0.8  # under the same labels


def test_auto_takes_k_by_evidence_also_for_the_penalised_method(simulated, here, capsys):
    fit = "fit sim/responses.csv --grid 6 --segments auto --smoothness 1 --out fit"
    code, out, _ = vseg(fit, capsys)
    assert (code, out.startswith("fit: K = 2 by evidence (plausible: 2")) == (0, True)
    assert summary(here / "fit")["segments_plausible"][0] == 2
    assert "segments.png" in files(here / "fit")


def test_very_few_answers_give_a_warning(simulated, here, capsys):
    lines = (here / "sim/responses.csv").read_text().splitlines(keepends=True)
    (here / "few.csv").write_text("".join(lines[:9]))
    fit = "fit few.csv --grid 6 --segments 2 --by participant --prior group --out fit"
    code, _, err = vseg(fit, capsys)
    assert code == 0
    assert "8 trials are few for 36 locations" in err
    assert "participant P1: There is no other participant to make a group prior from" in err


def test_an_image_prior_also_reports_the_maps_without_it(simulated, here, capsys):
    labels = Maps.load("sim/truth.npz").labels.reshape(6, 6)
    Image.fromarray(np.kron(labels * 200, np.ones((16, 16))).astype(np.uint8)).save("shown.png")
    code, out, _ = vseg(f"{FIT} --segments 2 --prior image --picture shown.png", capsys)
    alone = summary(here / "fit")["spatial"]
    assert code == 0
    assert f"Answers alone, without the image: mean entropy {alone['mean_entropy']:.3f} nats" in out
    assert alone["entropy_low"] < alone["mean_entropy"] < alone["entropy_high"]
    assert alone["lapses"] == [0, 0]
    assert alone["converged"] == (alone["rhat"] <= 1.05)
    with np.load("fit/maps.npz") as own, np.load("fit/maps-spatial.npz") as plain:
        assert not np.array_equal(own["probabilities"], plain["probabilities"])


def test_the_number_of_draws(simulated, here, capsys):
    assert vseg(f"{FIT} --segments 2 --draws 100 --by participant", capsys)[0] == 0
    for path in (here / "fit").rglob("maps.npz"):
        with np.load(path) as arrays:
            assert len(arrays["draws"]) == 100, path


def test_the_help_states_the_defaults_of_the_library(capsys):
    text = " ".join(vseg("fit --help", capsys)[1].split())
    assert f"Number of maps to draw from the posterior [default: {DRAWS}]." in text
    assert f"increase it if the chains do not agree [default: {BUDGET}]." in text


@pytest.mark.parametrize("method", ["penalised", "posterior"])
def test_a_table_that_is_not_text_is_one_sentence(here, capsys, method):
    (here / "latin.csv").write_bytes("participant,i,j,same\nJürgen,0,1,1\n".encode("latin-1"))
    code, _, err = vseg(f"fit latin.csv --grid 4 --segments 2 --method {method}", capsys)
    assert (code, err.count("latin.csv is not UTF-8 text; save it as CSV (UTF-8).")) == (1, 1)
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "option",
    [
        "--smoothness 1", "--loss cross_entropy", "--solver coordinate_descent", "--kernel four", "--weights pairs",
        "--max-iterations 500", "--method penalised",
    ],
)  # fmt: skip
def test_an_option_of_the_penalised_method_selects_it(simulated, here, capsys, option):
    assert vseg(f"{FIT} --segments 2 {option}", capsys)[0] == 0
    assert summary(here / "fit")["solver"] == "coordinate_descent"
    assert summary(here / "fit")["smoothness"] is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--method magic", "--method: 'magic' is not one of 'penalised', 'posterior'."),
        ("--prior group", "add --by participant to use it"),
        ("--prior image", "the data set has none; give its file with --picture"),
        ("--prior magic", "--prior: 'magic' is not one of 'spatial', 'image', 'group'."),
        ("--lapses some", "--lapses: expected auto, none, estimate, or two rates"),
        ("--lapses 0.1,2", "--lapses: expected a number from 0 to 0.5, got '2'"),
        ("--draws 7", "--draws: expected 8 or more, got '7'."),
        ("--draws 20000", "--draws: expected 10000 or less, got '20000'."),
        (
            "--method posterior --loss squared_error",
            "--loss (penalised) cannot be used with the method posterior; leave it out, or use --method penalised.",
        ),
        (
            "--method posterior --smoothness 1 --kernel four --max-iterations 5",
            "--smoothness (penalised), --kernel (penalised), --max-iterations (penalised) cannot be used with the "
            "method posterior; leave them out, or use --method penalised.",
        ),
        (
            "--method penalised --draws 64",
            "--draws (posterior) cannot be used with the method penalised; leave it out, or use --method posterior.",
        ),
        (
            "--method penalised --prior image --lapses none",
            "--prior (posterior), --lapses (posterior) cannot be used with the method penalised;",
        ),
        (
            "--weights pairs --budget 100",
            "--weights (penalised) and --budget (posterior) are settings of two methods; give those of one only.",
        ),
        ("--budget 7", "--budget: expected 8 or more, got '7'."),
        ("--method penalised --loss nope", "--loss: 'nope' is not one of 'squared_error', 'cross_entropy'."),
        ("--method penalised --kernel hm", "hm"),
        ("--method penalised --weights hm", "--weights: 'hm' is not one of 'trials', 'pairs'."),
        ("--method penalised --solver hm", "--solver: 'hm' is not one of 'coordinate_descent',"),
    ],
)
def test_bad_input(simulated, here, capsys, options, message):
    code, _, err = vseg(f"{FIT} --segments 2 {options}", capsys)
    assert code == 1
    assert message in err
    assert not (here / "fit").exists()
