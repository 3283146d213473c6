"""How the pairs came about that an adaptive study's answers are to, and what its chooser has learnt from."""

from dataclasses import dataclass

import numpy as np

from vseg import store
from vseg.adaptive.history import AdaptiveAnswer
from vseg.data.responses import Responses
from vseg.monitor.answers import Answers
from vseg.store.studies import StudyRow


@dataclass(frozen=True)
class ChoiceCounts:
    """Answers that count: to `chosen` pairs, to the `fixed` ones at first, and to those shown since none was chosen."""

    chosen: int
    fixed: int
    fallen_back: int


def count_choices(study: StudyRow, answers: Answers) -> ChoiceCounts | None:
    """Of a study, or None of one that chooses nothing."""
    return (
        answers.kept("adapted", lambda: _adapted(study, answers)) if study.study.design.is_adaptive else None
    )


def _adapted(study: StudyRow, answers: Answers) -> ChoiceCounts:
    """A person begins with fixed pairs on each image; a crowd does so once."""
    rows = answers.used & ~answers.chosen
    whose = 0 if study.study.design.shared else answers.session[rows].astype(np.int64)
    _, unchosen = np.unique(whose * len(answers.images) + answers.image[rows], return_counts=True)
    fixed = int(np.minimum(unchosen, study.study.initial_pairs).sum())
    return ChoiceCounts(int((answers.used & answers.chosen).sum()), fixed, int(unchosen.sum()) - fixed)


def has_chooser(study: StudyRow, participant: str | None) -> bool:
    """Whether pairs are chosen from these answers: a participant's own, or everybody's where a crowd shares them."""
    design = study.study.design
    return design.is_adaptive and (participant is None) == bool(design.shared)


def read_chooser_answers(
    db: store.Database, study: StudyRow, answers: Answers, image: str, participant: str | None
) -> Responses:
    """The answers that the chooser of an image has learnt from, and those since, in the order in which it takes them.

    A person who came twice has a chooser a session: it is that of the last one with answers about the image.
    """
    with db.reading() as connection:
        if participant is None:
            sessions = list(store.choices.list_contributing_sessions(connection, study.id, image))
        else:
            about = answers.used & (answers.image == answers.images.index(image))
            places = np.intersect1d(answers.session[about], answers.places(participant))
            sessions = [answers.sessions[place].id for place in places[-1:]]
        heard = {session: store.choices.read_answers(connection, session) for session in sessions}
        batches = store.choices.list_bases(connection, image, sessions)
    order: list[AdaptiveAnswer] = []
    before = dict.fromkeys(sessions, 0)
    everything = {session: each.records for session, each in heard.items()}
    for taken in (*batches.values(), everything):
        for session, records in taken.items():
            if session in heard and records > before[session]:
                new = range(before[session], records)
                order += [
                    each
                    for each in heard[session].answers
                    if each.seq in new and each.image == image and each.good
                ]
                before[session] = records
    i, j, same = ([getattr(each, name) for each in order] for name in ("i", "j", "same"))
    return Responses(answers.layout, i, j, same, image=image)
