"""How the pairs came about that an adaptive study's answers are to."""

from dataclasses import dataclass

import numpy as np

from vseg.monitor.answers import Answers
from vseg.store.studies import StudyRow


@dataclass(frozen=True)
class Adapted:
    """Answers that count: to `chosen` pairs, to the `fixed` ones at first, and to those shown since none was chosen."""

    chosen: int
    fixed: int
    fallen_back: int


def adapted(study: StudyRow, answers: Answers) -> Adapted | None:
    """Of a study, or None of one that chooses nothing."""
    return answers.kept("adapted", lambda: _adapted(study, answers)) if study.study.design.adaptive else None


def _adapted(study: StudyRow, answers: Answers) -> Adapted:
    """A person begins with fixed pairs on each image; a crowd does so once."""
    rows = answers.used & ~answers.chosen
    whose = 0 if study.study.design.shared else answers.session[rows].astype(np.int64)
    _, unchosen = np.unique(whose * len(answers.images) + answers.image[rows], return_counts=True)
    fixed = int(np.minimum(unchosen, study.study.start).sum())
    return Adapted(int((answers.used & answers.chosen).sum()), fixed, int(unchosen.sum()) - fixed)
