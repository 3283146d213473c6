"""`vseg groups`: two fits, or one and a table of who is in which group."""

import csv
import json
from pathlib import Path

import pytest

from commands import files, vseg

HEAD = "participant,folder,mean_entropy,entropy_low,entropy_high,entropy_spread,note\n"


def a_fit(folder, values, prefix):
    Path(folder).mkdir()
    rows = (
        f"{prefix}{at},participants/{at},{value},{value - 0.05},{value + 0.06},0.03,\n"
        for at, value in enumerate(values)
    )
    Path(folder, "participants.csv").write_text(HEAD + "".join(rows) + f"{prefix}x,,,,,,too few answers\n")


@pytest.fixture
def fits(here):
    a_fit("low", [0.1, 0.15, 0.2, 0.12], "a")
    a_fit("high", [0.3, 0.35, 0.25, 0.4], "b")
    return here


def test_two_fits(fits, capsys):
    code, out, err = vseg("groups low high --out compared", capsys)
    assert (code, err) == (0, "")
    assert out.startswith("low vs high: mean entropy 0.143 vs 0.325 nats (4 and 4 people), difference 0.18")
    assert files(Path("compared")) == {"comparison.json", "entropies.csv", "entropies.png"}
    found = json.loads(Path("compared/comparison.json").read_text("utf-8"))
    assert found["names"] == ["low", "high"]
    assert found["p"] < 0.01
    assert 0 < found["difference"]["low"] < found["difference"]["value"] < found["difference"]["high"]
    with open("compared/entropies.csv", encoding="utf-8", newline="") as file:
        assert [row["group"] for row in csv.DictReader(file)] == ["low"] * 4 + [
            "high"
        ] * 4  # the others unfitted


def test_one_fit_and_its_groups(fits, capsys):
    Path("who.csv").write_text(
        "participant,group\na0,patients\na1,patients\na2,controls\na3,controls\nz,controls\n"
    )
    code, out, _ = vseg("groups low --table who.csv", capsys)
    assert (code, out.split(":")[0]) == (0, "patients vs controls")


def test_the_same_people_twice_are_compared_with_themselves(fits, capsys):
    a_fit("again", [0.2, 0.26, 0.3, 0.21], "a")
    code, out, _ = vseg("groups low again", capsys)
    assert code == 0
    assert "(the same 4 people)" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("low", "Name the folders of two fits"),
        ("low low", "Both groups are low"),
        ("low nothing", "No file nothing/participants.csv"),
        ("low high --table who.csv", "leave the second folder out"),
        ("low --table who.csv", "into 1 groups (only); expected two"),
        ("low --table low/participants.csv", "has no column group"),
        ("low penalised", "has no column entropy_spread"),
    ],
)
def test_bad_input(fits, capsys, arguments, said):
    Path("who.csv").write_text("participant,group\na0,only\n")
    Path("penalised").mkdir()
    Path("penalised/participants.csv").write_text("participant,folder,mean_entropy\nP1,x,0.3\n")
    code, _, err = vseg(f"groups {arguments}", capsys)
    assert code == 1
    assert said in err
    assert not Path("groups").exists()
