"""What judges `make chaos` notices what it is there for: rows, maps, and numbers that were not reached."""

from dataclasses import replace

import pytest

from chaos import page, wanted
from chaos.checking import Verdict, compared
from chaos.disks import NO_MOUNT
from chaos.faults import BOTH, FAULTS
from chaos.people import answer
from chaos.rounds import Outcome
from chaos.tab_rounds import same_map
from chaos.tabs import ITEMS

KEY, GIVEN = ("s", 5), (7, 1, 2, True)
ROW = KEY, GIVEN


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([ROW], Verdict()),
        ([], Verdict(lost=1)),
        ([ROW, ROW], Verdict(doubled=1)),
        ([ROW, (("s", 6), GIVEN)], Verdict(doubled=1, invented=1)),
        ([(KEY, (7, 1, 2, False))], Verdict(changed=1)),
        ([(KEY, (7, 1, 3, True))], Verdict(changed=1)),
        ([(KEY, (8, 3, 4, False)), ROW], Verdict(doubled=1, changed=1)),  # two rows under one number
        ([ROW, (KEY, (8, 3, 4, False))], Verdict(doubled=1, changed=1)),
        ([ROW, (("s", 6), (8, 3, 4, False))], Verdict(invented=1)),
        ([ROW, (("t", 5), GIVEN)], Verdict(invented=1)),
    ],
)
def test_rows(found, verdict):
    assert compared({KEY: GIVEN}, {ROW}, found) == verdict
    assert bool(verdict) == (found == [ROW])


def test_what_was_sent_and_not_acknowledged_may_be_there():
    """As it was sent: a reply that was lost leaves such a row."""
    sent = ("s", 6), (8, 3, 4, False)
    assert compared({KEY: GIVEN}, {ROW, sent}, [ROW, sent])
    assert compared({KEY: GIVEN}, {ROW, sent}, [ROW, (sent[0], (8, 3, 4, True))]).invented == 1


def test_a_map_of_other_pairs_than_the_page_was_told_is_another():
    """Also where each answer is right for the pair that is stored."""
    told = {"i": [item % 16 for item in range(ITEMS)], "j": [(item * 3 + 1) % 16 for item in range(ITEMS)]}
    pairs = list(zip(told["i"], told["j"], strict=True))
    right = [(("s", k), (k, i, j, answer(i, j, k))) for k, (i, j) in enumerate(pairs)]
    assert same_map(right, told)
    assert same_map(right[::-1], told)
    other = [(("s", k), (k, (i + 2) % 16, j, answer((i + 2) % 16, j, k))) for k, (i, j) in enumerate(pairs)]
    assert not same_map(other, told)
    assert not same_map(right[1:], told)
    assert not same_map(right, {})


def outcomes() -> list[Outcome]:
    """Of a run that reaches every number, exactly or almost."""
    done = {"planned": 1, "people": 1, "completed": 1, "sessions": 1, "map_equal": True}
    killed = Outcome("killed", "SQLite", **done | {"planned": 150}, injected=150, responses=60_000)
    killed.recoveries_s, killed.kills_server = [1.0, 1.99], True
    other = Outcome("cut", "SQLite", **done | {"planned": 50}, injected=50, responses=40_000)
    other.recoveries_s = [60.0]  # of a database, say, which nobody has promised anything about
    return [killed, other]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"responses": 59_999}, "responses acknowledged: wanted at least 100,000, reached 99,999"),
        ({"injected": 149}, "faults injected: wanted at least 200, reached 199"),
        ({"recoveries_s": [1.0, 2.0]}, "wanted less than 2 s, reached 2.00 s (2 times)"),
        ({"recoveries_s": []}, "wanted less than 2 s, reached nothing, since none was killed"),
        ({"kills_server": False}, "wanted less than 2 s, reached nothing, since none was killed"),
    ],
)
def test_numbers_that_were_not_reached_are_named(change, said):
    killed, other = outcomes()
    assert killed.well
    found = [replace(killed, **change), other]
    assert (wanted.missed(found) == "") == (said == "")
    assert said in wanted.missed(found)
    assert page.numbers(found).count(" NO |") == (said != "")


def test_a_full_run_can_reach_the_numbers():
    """And kills the server in it, on both databases."""
    times = [fault.times * len(fault.databases) for fault in FAULTS if not fault.small_disk]
    assert sum(times) >= wanted.FAULTS
    assert {name for fault in FAULTS if fault.kills_server for name in fault.databases} == set(BOTH)


def test_what_is_left_out_is_in_the_table():
    left = Outcome("disk full", "PostgreSQL", left_out=NO_MOUNT)
    *_, row, total = page.rows([*outcomes(), left])
    assert row[:2] == ["disk full", f"PostgreSQL: LEFT OUT, {NO_MOUNT}"]
    assert set(row[2:]) == {""}
    shown = dict(zip(page.COLUMNS, total, strict=True))
    assert (shown["map"], shown["well"], shown["people"]) == ("same", "yes", "2/2")


def test_a_round_that_is_not_well_is_named():
    killed, other = outcomes()
    assert page.verdict([killed, other]).startswith("Well: 100,000 responses acknowledged under 200 faults")
    other.verdict = Verdict(lost=1)
    assert "NOT WELL" in page.verdict([killed, other])
    assert "cut, SQLite" in page.verdict([killed, other])
    assert [row[-1] for row in page.rows([killed, other])] == ["yes", "NO", "NO"]


def test_who_is_turned_away_leaves_no_session():
    away = Outcome("no database", "Chromium", people=1, completed=1, turned_away=1, map_equal=True)
    assert away.well
    assert not replace(away, sessions=1).well
    assert not replace(away, turned_away=0).well
