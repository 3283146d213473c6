"""Studies exported by earlier versions replay exactly: every batch chooses the same pairs again.

`earlier/` holds exports of vseg 0.1.0 with simulated participants, reduced to the files that a replay reads. Do not
regenerate them: they stand for data that laboratories have already exported.
"""

from pathlib import Path

import pytest

from vseg.adaptive.replay import replay

EARLIER = Path(__file__).parent / "earlier"


@pytest.mark.parametrize(("study", "count"), [("solo", 4), ("crowd", 7), ("five-segments", 2)])
def test_an_earlier_export_replays_to_the_same_choices(study, count):
    batches = list(replay(EARLIER / study))
    assert len(batches) == count
    assert all(batch.is_same for batch in batches)
