"""What judges `make chaos` notices what it is there for: rows, maps, and numbers that were not reached."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from chaos import counted, page, wanted
from chaos.checking import Verdict, compared
from chaos.disks import NO_MOUNT
from chaos.faults import BOTH, FAULTS
from chaos.people import answer
from chaos.rounds import BY_THEN, Outcome, moments
from chaos.tab_rounds import same_map
from chaos.tabs import ITEMS

KEY, GIVEN = ("s", 5), (7, 1, 2, True)
ROW = KEY, GIVEN
SHORT = "make chaos ARGS=--quick"


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


def shown(column: str, found: list[Outcome]) -> list[str]:
    """What the table has in a column."""
    return [row[page.COLUMNS.index(column)] for row in page.rows(found)]


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


@given(faults=st.integers(2, 30), rng=st.randoms(use_true_random=False))
def test_the_first_of_several_faults_meets_who_comes_in(faults, rng):
    first, *others = moments(faults, rng)
    assert first == 0
    assert others == sorted(others)
    assert 0 < others[0] <= others[-1] <= BY_THEN


@given(rng=st.randoms(use_true_random=False))
def test_a_fault_that_is_alone_meets_who_answers(rng):
    """Else the gap of a lock of 30 s was 0.2 s or 30 s, as it happened to come before a session or after."""
    (share,) = moments(1, rng)
    assert 0 < share <= BY_THEN
    assert moments(0, rng) == []


def test_what_is_left_out_is_in_the_table():
    left = Outcome("disk full", "PostgreSQL", left_out=NO_MOUNT)
    *_, row, total = page.rows([*outcomes(), left])
    assert row[:2] == ["disk full", f"PostgreSQL: LEFT OUT, {NO_MOUNT}"]
    assert set(row[2:]) == {""}
    cells = dict(zip(page.COLUMNS, total, strict=True))
    assert (cells["map"], cells["passed"], cells["people"]) == ("same", "yes", "2/2")


def test_a_round_that_is_not_well_is_named():
    killed, other = outcomes()
    assert page.verdict([killed, other]).startswith("Passed: 100,000 responses acknowledged under 200 faults")
    other.verdict = Verdict(lost=1)
    assert "FAILED" in page.verdict([killed, other])
    assert "cut, SQLite" in page.verdict([killed, other])
    assert shown("passed", [killed, other]) == ["yes", "NO", "NO"]
    assert shown("lost", [killed, other]) == ["0", "1", "1"]


def test_who_is_turned_away_leaves_no_session():
    away = Outcome("no database", "Chromium", people=1, completed=1, turned_away=1, map_equal=True)
    assert away.well
    assert not replace(away, sessions=1).well
    assert not replace(away, turned_away=0).well


def test_a_recovery_that_is_too_long_is_marked_and_fails_no_round():
    """Only of what was killed: of the others nothing was promised."""
    killed, other = outcomes()
    assert shown("recovery, s", [killed, other]) == ["1.99", "60.00", "60.00"]
    killed.recoveries_s = [1.0, 2.0]
    assert shown("recovery, s", [killed, other]) == ["2.00 (NOT less than 2)", "60.00", "60.00"]
    assert shown("passed", [killed, other]) == ["yes", "yes", "yes"]


def test_a_short_run_says_that_it_does_not_judge_a_recovery():
    """Else "NOT less than 2" would stand beside "passed"."""
    killed, _ = outcomes()
    killed.recoveries_s = [4.27]
    said = "4.27 (over 2, not judged in a short run)"
    assert page.rows([killed], SHORT)[0][page.COLUMNS.index("recovery, s")] == said
    assert said in page.markdown([killed], SHORT)
    assert said in page.html([killed], "said", SHORT, {})
    assert "NOT less" not in page.html([killed], "said", SHORT, {})


def test_numbers_in_the_table_are_written_as_in_the_sentence():
    found = [replace(outcomes()[0], to_spoil=1209, requests_spoilt=1209)]
    assert shown("responses", found) == ["60,000", "60,000"]
    assert shown("times", found) == ["150 (1,209)", "150 (1,209)"]
    assert "60,000 responses" in page.verdict(found)


def test_a_short_run_leaves_the_page_of_a_whole_one(tmp_path, monkeypatch):
    whole, short, document = (tmp_path / name for name in ("chaos.html", "chaos-short.html", "page.md"))
    for name, file in {"PAGE": whole, "SHORT_PAGE": short, "DOCUMENT": document}.items():
        monkeypatch.setattr(page, name, file)
    document.write_text("\n".join(page.MARKS))
    assert page.write(outcomes(), 14, "", {}) == [whole, document]
    before = whole.read_text("utf-8"), document.read_text("utf-8")
    assert page.write(outcomes(), 7, SHORT, {}) == [short]
    assert (whole.read_text("utf-8"), document.read_text("utf-8")) == before
    assert "<caption>make chaos ARGS=--quick, " in short.read_text("utf-8")


def test_what_went_wrong_catches_the_eye():
    killed, other = outcomes()
    assert '<p class="note good">Passed' in page.html([killed, other], "said", "", {})
    other.verdict = Verdict(lost=1)
    left = Outcome("disk full", "PostgreSQL", left_out=NO_MOUNT)
    written = page.html([killed, other, left], "said", "", {})
    assert '<p class="note bad">FAILED' in written
    assert written.count('<td class="no">NO</td>') == 2, "its row, and that of all"
    assert f'<td class="remark" colspan="11">PostgreSQL: LEFT OUT, {NO_MOUNT}</td>' in written


def test_the_page_explains_every_column_and_says_when_it_is_short():
    written = page.html(outcomes(), "said", SHORT, {})
    for column in page.COLUMNS:
        assert f"<dt>{column}</dt><dd>" in written
    assert f"This was a short run ({SHORT})" in written
    assert "at least 100,000" not in written
    whole = page.html(outcomes(), "said", "", {})
    assert "short run" not in whole
    assert "Passed: " in whole
    assert "FAILED: " in page.html(outcomes()[:1], "said", "", {}), "too few responses"
    assert "at least 100,000" in whole


@pytest.mark.parametrize(("number", "said"), [(0, "0 faults"), (1, "1 fault"), (2000, "2,000 faults")])
def test_nouns_fit_their_numbers(number, said):
    assert page.counted(number, "fault") == said


GENERATED = Counter({"requests": 20_000})
REFUSED = Counter({"refused": 794})


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({}, ""),
        ({counted.GENERATED: GENERATED, counted.MATRIX: REFUSED}, ""),
        ({counted.GENERATED: GENERATED - Counter(["requests"])}, "reached 19,999, server errors: 0"),
        ({counted.GENERATED: GENERATED + Counter(["server errors"])}, "reached 20,000, server errors: 1"),
        ({counted.GENERATED: GENERATED + Counter(["failed"])}, "the test FAILED"),
        ({counted.MATRIX: REFUSED + Counter(["read"])}, "unauthorised reads: 1, writes: 0"),
        ({counted.MATRIX: REFUSED + Counter(["written"])}, "unauthorised reads: 0, writes: 1"),
        ({counted.MATRIX: Counter(["failed"])}, "the test FAILED"),
    ],
)
def test_what_other_tests_have_counted_is_judged(notes, said):
    assert (wanted.missed(outcomes(), notes) == "") == (said == "")
    assert said in wanted.missed(outcomes(), notes)
    assert len(wanted.numbers(outcomes(), notes)) == 3 + len(notes)


def test_counts_are_those_of_the_code_at_hand(tmp_path, monkeypatch):
    """However the tests end that have counted, and none of an earlier run of the same test."""
    for part, requests in (("sqlite", 5), ("postgresql", 7), ("sqlite", 6)):
        with counted.counting(counted.GENERATED, part, tmp_path) as counts:
            counts["requests"] += requests
    assert counted.at_hand(tmp_path) == {counted.GENERATED: Counter(requests=13)}
    with pytest.raises(ZeroDivisionError), counted.counting(counted.MATRIX, "all", tmp_path) as counts:
        counts["refused"] += 1 // 0
    assert counted.at_hand(tmp_path)[counted.MATRIX] == Counter(failed=1)
    monkeypatch.setattr(counted, "CODE", ("tests/chaos",))  # as if it had been changed
    assert counted.at_hand(tmp_path) == {}
    with counted.counting(counted.GENERATED, "sqlite", tmp_path) as counts:
        counts["requests"] += 8
    assert counted.at_hand(tmp_path) == {counted.GENERATED: Counter(requests=8)}
