import pytest

from vseg._support.progress import part_progress
from vseg.errors import InvalidInput


@pytest.mark.parametrize("reports", [[], [2, 1], [2, 3], [2, 9]])
def test_a_failed_part_reports_all_its_steps(reports):
    done: list[int] = []

    def fail() -> None:
        with part_progress(done.append, 5) as advance:
            for report in reports:
                advance(report)
            raise InvalidInput("Too few.")

    with pytest.raises(InvalidInput):
        fail()
    assert sum(done) == 5
    assert min(done) >= 0
