"""`vseg groups`: two fits, or one fit and a table of its participants' groups."""

import csv
import json
from pathlib import Path

import pytest

from commands import files, vseg

HEAD = (
    "participant,folder,trials,mean_entropy,entropy_low,entropy_high,entropy_spread,entropy_flat,entropy_flat_spread,"
    "segments,note\n"
)


SETTINGS = {"prior": "spatial", "lapses": "none"}


def write_fit(folder, values, prefix, segments=3, version="1", counts=(), trials=100, pull=0.0, **settings):
    """Write a fit whose estimates the prior has pulled down by `pull`, as far as a comparison reads it."""
    Path(folder).mkdir()
    about = {"segments": segments, "prior": "spatial", "version": version, "settings": SETTINGS | settings}
    if counts:
        about["segments_by"] = "participant"
    Path(folder, "summary.json").write_text(json.dumps(about))
    rows = (
        f"{prefix}{at},participants/{at},{trials},{value - pull},{value - 0.05},{value + 0.06},0.03,{value},0.03,{K},\n"
        for at, (value, K) in enumerate(zip(values, counts or [segments] * len(values), strict=True))
    )
    Path(folder, "participants.csv").write_text(
        HEAD + "".join(rows) + f"{prefix}x,,,,,,,,,,too few answers\n"
    )


@pytest.fixture
def fits(here):
    write_fit("low", [0.1, 0.15, 0.2, 0.12], "a")
    write_fit("high", [0.3, 0.35, 0.25, 0.4], "b")
    return here


def test_two_fits(fits, capsys):
    code, out, err = vseg("groups low high --out compared", capsys)
    assert (code, err) == (0, "")
    assert out.startswith(
        "low vs high: mean entropy 0.143 vs 0.325 nats (4 and 4 participants), difference 0.18"
    )
    assert files(Path("compared")) == {"comparison.json", "entropies.csv", "entropies.png"}
    found = json.loads(Path("compared/comparison.json").read_text("utf-8"))
    assert found["names"] == ["low", "high"]
    assert found["p"] < 0.01
    assert 0 < found["difference"]["low"] < found["difference"]["value"] < found["difference"]["high"]
    with open("compared/entropies.csv", encoding="utf-8", newline="") as file:
        assert [row["group"] for row in csv.DictReader(file)] == ["low"] * 4 + [
            "high"
        ] * 4  # the others unfitted


def test_one_fit_and_a_table_of_groups(fits, capsys):
    Path("who.csv").write_text(
        "participant,group\na0,patients\na1,patients\na2,controls\na3,controls\nz,controls\n"
    )
    code, out, err = vseg("groups low --table who.csv", capsys)
    assert (code, out.split(":")[0]) == (0, "patients vs controls")
    assert "who.csv also names z, who is not in low." in err
    found = json.loads(Path("groups/comparison.json").read_text("utf-8"))
    penalised = dict.fromkeys(("smoothness", "loss", "kernel", "weights"))
    about = {"method": "posterior", "segments": 3, "segments_by": "all", "version": "1"}
    assert found["fits"] == {"low": {**about, **SETTINGS, **penalised}}
    assert found["relative"] is None


def test_groups_are_compared_without_the_pull_of_the_prior(fits, capsys):
    write_fit("pulled", [0.3, 0.35, 0.25, 0.4], "c", pull=0.2)
    differences = []
    for second in ("high", "pulled"):
        assert vseg(f"groups low {second} --out {second}-compared", capsys)[0] == 0
        found = json.loads(Path(f"{second}-compared/comparison.json").read_text("utf-8"))
        differences.append(found["difference"])
    assert differences[0] == differences[1]
    with open("pulled-compared/entropies.csv", encoding="utf-8", newline="") as file:
        last = list(csv.DictReader(file))[-1]
    assert (float(last["mean_entropy"]), float(last["entropy_flat"])) == pytest.approx((0.2, 0.4))


def test_groups_with_different_numbers_of_answers_are_compared_with_a_warning(fits, capsys):
    write_fit("short", [0.3, 0.35, 0.25, 0.4], "c", trials=50)
    code, _, err = vseg("groups low short", capsys)
    assert code == 0
    assert "Participants of short gave 50 answers each (median), those of low 100" in " ".join(err.split())


def test_participants_in_no_group_are_named(here, capsys):
    write_fit("fit", [0.1, 0.15, 0.2, 0.12, 0.3, 0.2], "a")
    Path("who.csv").write_text("participant,group\na0,x\na1,x\na2,y\na3,y\nax,y\n")
    code, _, err = vseg("groups fit --table who.csv", capsys)
    assert code == 0
    assert "a4 and a5 of fit are not in who.csv and are left out." in err
    assert "who.csv also names ax, who could not be fitted." in err


def test_fits_with_different_settings_are_compared_with_a_warning(fits, capsys):
    write_fit("slips", [0.2, 0.26, 0.3, 0.21], "s", lapses="estimate")
    write_fit("others", [0.2, 0.26, 0.3, 0.21], "o", version="2", prior="group", lapses=[0.02, 0.05])
    code, _, err = vseg("groups low slips", capsys)
    assert code == 0
    assert "low assumed no lapses, slips estimated lapses: fit both with the same settings." in err
    found = json.loads(Path("groups/comparison.json").read_text("utf-8"))
    assert [fit["lapses"] for fit in found["fits"].values()] == ["none", "estimate"]
    code, _, err = vseg("groups low others --out again", capsys)
    assert code == 0
    said = (
        "low assumed no lapses, others took lapses to be 0.02 and 0.05; low has the spatial prior, others the "
        "group prior; low is of vseg 1, others of 2: fit both with the same settings."
    )
    assert said in " ".join(err.split())


def test_participants_with_different_k_are_compared_in_nats_and_as_shares_of_log_k(here, capsys):
    """Here all entropies of the second group are larger in nats, and equal to the first's relative to log K."""
    write_fit("two", [0.1, 0.2, 0.3, 0.2], "a", segments=2, counts=[2, 2, 2, 2])
    write_fit("four", [0.2, 0.4, 0.6, 0.4], "b", segments=4, counts=[4, 4, 4, 4])
    code, out, err = vseg("groups two four", capsys)
    assert (code, err) == (0, "")
    assert "Participants have 2 to 4 segments, and the entropy of K segments is at most log K." in out
    assert (
        "As shares of log K: mean entropy / log K 0.289 vs 0.289 (4 and 4 participants), difference 0.000"
        in out
    )
    found = json.loads(Path("groups/comparison.json").read_text("utf-8"))
    assert found["difference"]["value"] == pytest.approx(0.2)
    assert found["relative"]["difference"]["value"] == pytest.approx(0, abs=1e-6)
    with open("groups/entropies.csv", encoding="utf-8", newline="") as file:
        assert [row["segments"] for row in csv.DictReader(file)] == ["2"] * 4 + ["4"] * 4


def test_different_k_in_one_fit_and_its_groups(here, capsys):
    write_fit("fit", [0.1, 0.2, 0.3, 0.2], "a", counts=[2, 3, 2, 3])
    Path("who.csv").write_text("participant,group\na0,x\na1,x\na2,y\na3,y\n")
    code, out, _ = vseg("groups fit --table who.csv", capsys)
    assert code == 0
    assert "Participants have 2 to 3 segments" in out


def test_one_k_for_all_and_a_k_for_each_participant(fits, capsys):
    write_fit("own", [0.2, 0.3, 0.4, 0.3], "c", segments=4, counts=[3, 3, 3, 3])
    code, out, err = vseg("groups low own", capsys)
    assert (code, "log K" in out) == (0, False)
    assert "own has a number of segments for each participant, low one for all: fit both" in " ".join(
        err.split()
    )


def test_a_fit_without_recorded_settings(fits, capsys):
    Path("low/summary.json").write_text('{"segments": 3, "prior": "spatial", "version": "1"}')
    code, _, err = vseg("groups low high", capsys)
    assert code == 0
    assert "summary.json does not say how low was fitted" in err


def test_the_same_participants_are_compared_with_themselves(fits, capsys):
    write_fit("again", [0.2, 0.26, 0.3, 0.21], "a")
    code, out, _ = vseg("groups low again", capsys)
    assert code == 0
    assert "(the same 4 participants)" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("low", "Expected two fits, or one fit and a table"),
        ("low low", "Both groups are low"),
        ("low nothing", "No file nothing/participants.csv"),
        ("low high --table who.csv", "leave the second fit out"),
        ("low --table who.csv", "into 1 group (only); expected two"),
        (
            "low --table few.csv",
            "Group b has one participant (a2); 2 are needed. few.csv also names zz and yy, who",
        ),
        ("low --table both.csv", "both.csv puts a0 into a and b; expected one group each"),
        ("low four", "low has 3 segments and four 4, whose entropies cannot be compared"),
        ("low one", "Group one has one participant (c0); 2 are needed."),
        ("low shared", "Only a0 is in both groups"),
        ("low torn", "torn/summary.json is not JSON"),
        ("low --table low/participants.csv", "has no column group"),
        ("low old", "has no column entropy_spread"),
        ("low penalised", "low was fitted with the method posterior and penalised with the method penalised"),
    ],
)
def test_bad_input(fits, capsys, arguments, message):
    Path("who.csv").write_text("participant,group\na0,only\n")
    Path("few.csv").write_text("participant,group\na0,a\na1,a\na2,b\nzz,b\nyy,b\n")
    Path("both.csv").write_text("participant,group\na0,a\na1,a\na2,b\na0,b\n")
    write_fit("four", [0.1, 0.2], "c", segments=4)
    write_fit("one", [0.1], "c")
    write_fit("shared", [0.1], "a")
    write_fit("torn", [0.1, 0.2], "c")
    Path("torn/summary.json").write_text("{")
    rows = Path("high/participants.csv").read_text().splitlines(keepends=True)[1:]
    with open("shared/participants.csv", "a") as file:
        file.writelines(rows)
    for folder, columns, cells in (("old", "", ""), ("penalised", ",smoothness", ",0")):
        Path(folder).mkdir()
        Path(folder, "participants.csv").write_text(f"participant,mean_entropy{columns}\nP1,0.3{cells}\n")
    code, _, err = vseg(f"groups {arguments}", capsys)
    assert code == 1
    assert message in err
    assert not Path("groups").exists()
