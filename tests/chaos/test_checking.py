"""Test the checks of `make chaos` themselves: they find wrong rows, other maps and missed targets."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from chaos import page, security_counts, targets
from chaos.checking import Verdict, compare_records
from chaos.disks import NO_MOUNT
from chaos.faults import BOTH, FAULTS
from chaos.participants import answer
from chaos.rounds import LAST_FAULT_BY, Outcome, moments
from chaos.tab_rounds import has_same_map
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
def test_rows_are_compared(found, verdict):
    assert compare_records({KEY: GIVEN}, {ROW}, found) == verdict
    assert bool(verdict) == (found == [ROW])


def test_rows_without_acknowledgement_are_allowed_if_they_were_sent():
    """If a reply is lost, its row is stored as it was sent."""
    sent = ("s", 6), (8, 3, 4, False)
    assert compare_records({KEY: GIVEN}, {ROW, sent}, [ROW, sent])
    assert compare_records({KEY: GIVEN}, {ROW, sent}, [ROW, (sent[0], (8, 3, 4, True))]).invented == 1


def test_a_map_from_other_pairs_than_the_page_received_is_different():
    """This holds even if each answer is right for the pair that is stored."""
    told = {"i": [item % 16 for item in range(ITEMS)], "j": [(item * 3 + 1) % 16 for item in range(ITEMS)]}
    pairs = list(zip(told["i"], told["j"], strict=True))
    right = [(("s", k), (k, i, j, answer(i, j, k))) for k, (i, j) in enumerate(pairs)]
    assert has_same_map(right, told)
    assert has_same_map(right[::-1], told)
    other = [(("s", k), (k, (i + 2) % 16, j, answer((i + 2) % 16, j, k))) for k, (i, j) in enumerate(pairs)]
    assert not has_same_map(other, told)
    assert not has_same_map(right[1:], told)
    assert not has_same_map(right, {})


def outcomes() -> list[Outcome]:
    """Return the outcomes of a run that just reaches every target."""
    done = {"planned": 1, "people": 1, "completed": 1, "sessions": 1, "map_equal": True}
    killed = Outcome("killed", "SQLite", **done | {"planned": 150}, injected=150, responses=60_000)
    killed.recoveries_s, killed.kills_server = [1.0, 1.99], True
    other = Outcome("cut", "SQLite", **done | {"planned": 50}, injected=50, responses=40_000)
    other.recoveries_s = [60.0]  # such as a restarted database, for which there is no limit
    return [killed, other]


def column_cells(column: str, found: list[Outcome]) -> list[str]:
    """Return the cells of a column of the table."""
    return [row[page.COLUMNS.index(column)] for row in page.rows(found)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"responses": 59_999}, "responses acknowledged: target at least 100,000, reached 99,999"),
        ({"injected": 149}, "faults injected: target at least 200, reached 199"),
        ({"recoveries_s": [1.0, 2.0]}, "target less than 2 s, reached 2.00 s (2 times)"),
        ({"recoveries_s": []}, "target less than 2 s, reached nothing, because no server was killed"),
        ({"kills_server": False}, "target less than 2 s, reached nothing, because no server was killed"),
    ],
)
def test_missed_targets_are_named(change, said):
    killed, other = outcomes()
    assert killed.passed
    found = [replace(killed, **change), other]
    assert (targets.describe_missed(found) == "") == (said == "")
    assert said in targets.describe_missed(found)
    assert page.numbers(found).count(" NO |") == (said != "")


def test_a_complete_run_can_reach_the_targets():
    """It also kills the server, on both databases."""
    times = [fault.times * len(fault.databases) for fault in FAULTS if not fault.small_disk]
    assert sum(times) >= targets.FAULTS
    assert {name for fault in FAULTS if fault.kills_server for name in fault.databases} == set(BOTH)


@given(faults=st.integers(2, 30), rng=st.randoms(use_true_random=False))
def test_the_first_of_several_faults_happens_on_arrival(faults, rng):
    first, *others = moments(faults, rng)
    assert first == 0
    assert others == sorted(others)
    assert 0 < others[0] <= others[-1] <= LAST_FAULT_BY


@given(rng=st.randoms(use_true_random=False))
def test_a_single_fault_happens_during_the_answers(rng):
    """Before the first session, a lock of 30 s would not be part of any measured gap."""
    (share,) = moments(1, rng)
    assert 0 < share <= LAST_FAULT_BY
    assert moments(0, rng) == []


def test_a_skipped_fault_is_in_the_table():
    left = Outcome("disk full", "PostgreSQL", skipped=NO_MOUNT)
    *_, row, total = page.rows([*outcomes(), left])
    assert row[:2] == ["disk full", f"PostgreSQL: SKIPPED, {NO_MOUNT}"]
    assert set(row[2:]) == {""}
    cells = dict(zip(page.COLUMNS, total, strict=True))
    assert (cells["map"], cells["passed"], cells["people"]) == ("same", "yes", "2/2")


def test_a_failed_round_is_named():
    killed, other = outcomes()
    assert page.verdict([killed, other]).startswith("Passed: 100,000 responses acknowledged under 200 faults")
    other.verdict = Verdict(lost=1)
    assert "FAILED" in page.verdict([killed, other])
    assert "cut, SQLite" in page.verdict([killed, other])
    assert column_cells("passed", [killed, other]) == ["yes", "NO", "NO"]
    assert column_cells("lost", [killed, other]) == ["0", "1", "1"]


def test_a_participant_who_is_turned_away_leaves_no_session():
    away = Outcome("no database", "Chromium", people=1, completed=1, turned_away=1, map_equal=True)
    assert away.passed
    assert not replace(away, sessions=1).passed
    assert not replace(away, turned_away=0).passed


def test_a_slow_recovery_is_marked_and_fails_no_round():
    """The limit applies only to killed servers and workers."""
    killed, other = outcomes()
    assert column_cells("recovery, s", [killed, other]) == ["1.99", "60.00", "60.00"]
    killed.recoveries_s = [1.0, 2.0]
    assert column_cells("recovery, s", [killed, other]) == ["2.00 (NOT less than 2)", "60.00", "60.00"]
    assert column_cells("passed", [killed, other]) == ["yes", "yes", "yes"]


def test_a_short_run_does_not_check_the_recovery():
    """Otherwise "NOT less than 2" would stand beside "passed"."""
    killed, _ = outcomes()
    killed.recoveries_s = [4.27]
    said = "4.27 (over 2, not checked in a short run)"
    assert page.rows([killed], SHORT)[0][page.COLUMNS.index("recovery, s")] == said
    assert said in page.markdown([killed], SHORT)
    assert said in page.html([killed], "said", SHORT, {})
    assert "NOT less" not in page.html([killed], "said", SHORT, {})


def test_numbers_are_formatted_alike_in_table_and_summary():
    found = [replace(outcomes()[0], to_spoil=1209, requests_spoilt=1209)]
    assert column_cells("responses", found) == ["60,000", "60,000"]
    assert column_cells("times", found) == ["150 (1,209)", "150 (1,209)"]
    assert "60,000 responses" in page.verdict(found)


def test_a_short_run_does_not_overwrite_the_page_of_a_complete_run(tmp_path, monkeypatch):
    whole, short, document = (tmp_path / name for name in ("chaos.html", "chaos-short.html", "page.md"))
    for name, file in {"PAGE": whole, "SHORT_PAGE": short, "DOCUMENT": document}.items():
        monkeypatch.setattr(page, name, file)
    document.write_text("\n".join(page.MARKS))
    assert page.write(outcomes(), 14, "", {}) == [whole, document]
    before = whole.read_text("utf-8"), document.read_text("utf-8")
    assert page.write(outcomes(), 7, SHORT, {}) == [short]
    assert (whole.read_text("utf-8"), document.read_text("utf-8")) == before
    assert "<caption>make chaos ARGS=--quick, " in short.read_text("utf-8")


def test_failures_are_highlighted():
    killed, other = outcomes()
    assert '<p class="note good">Passed' in page.html([killed, other], "said", "", {})
    other.verdict = Verdict(lost=1)
    left = Outcome("disk full", "PostgreSQL", skipped=NO_MOUNT)
    written = page.html([killed, other, left], "said", "", {})
    assert '<p class="note bad">FAILED' in written
    assert written.count('<td class="no">NO</td>') == 2, "its own row and the row of all"
    assert f'<td class="remark" colspan="11">PostgreSQL: SKIPPED, {NO_MOUNT}</td>' in written


def test_the_page_explains_every_column_and_marks_a_short_run():
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
def test_counts_have_the_right_plural(number, said):
    assert page.format_count(number, "fault") == said


GENERATED = Counter({"requests": 20_000})
REFUSED = Counter({"refused": 794})


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({}, ""),
        ({security_counts.GENERATED: GENERATED, security_counts.MATRIX: REFUSED}, ""),
        ({security_counts.GENERATED: GENERATED - Counter(["requests"])}, "reached 19,999, server errors: 0"),
        (
            {security_counts.GENERATED: GENERATED + Counter(["server errors"])},
            "reached 20,000, server errors: 1",
        ),
        ({security_counts.GENERATED: GENERATED + Counter(["failed"])}, "the test FAILED"),
        ({security_counts.MATRIX: REFUSED + Counter(["read"])}, "unauthorised reads: 1, writes: 0"),
        ({security_counts.MATRIX: REFUSED + Counter(["written"])}, "unauthorised reads: 0, writes: 1"),
        ({security_counts.MATRIX: Counter(["failed"])}, "the test FAILED"),
    ],
)
def test_counts_of_the_security_tests_are_checked(notes, said):
    assert (targets.describe_missed(outcomes(), notes) == "") == (said == "")
    assert said in targets.describe_missed(outcomes(), notes)
    assert len(targets.numbers(outcomes(), notes)) == 3 + len(notes)


def test_only_counts_of_the_current_code_are_used(tmp_path, monkeypatch):
    """Failed tests are counted too; a test that runs again replaces its earlier counts."""
    for part, requests in (("sqlite", 5), ("postgresql", 7), ("sqlite", 6)):
        with security_counts.count_requests(security_counts.GENERATED, part, tmp_path) as counts:
            counts["requests"] += requests
    assert security_counts.load_counts(tmp_path) == {security_counts.GENERATED: Counter(requests=13)}
    with (
        pytest.raises(ZeroDivisionError),
        security_counts.count_requests(security_counts.MATRIX, "all", tmp_path) as counts,
    ):
        counts["refused"] += 1 // 0
    assert security_counts.load_counts(tmp_path)[security_counts.MATRIX] == Counter(failed=1)
    monkeypatch.setattr(security_counts, "CODE", ("tests/chaos",))  # as if the code had changed
    assert security_counts.load_counts(tmp_path) == {}
    with security_counts.count_requests(security_counts.GENERATED, "sqlite", tmp_path) as counts:
        counts["requests"] += 8
    assert security_counts.load_counts(tmp_path) == {security_counts.GENERATED: Counter(requests=8)}
