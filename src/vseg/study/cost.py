"""What a study costs, before anyone is invited: trials, minutes and people, and what they cover."""

import math
import warnings
from dataclasses import dataclass

from vseg import designs
from vseg.data.layout import Grid, Layout
from vseg.designs import Coverage
from vseg.errors import VsegWarning
from vseg.study.schema import Study
from vseg.study.trials import Round

ANSWER_S = 0.73  # the paper's 1.33 s a trial, less its 300 ms of cue and 300 ms of image
FEEDBACK_S = 1.0
READING_S = 180  # consent, device check, instructions, debriefing
DISTANCE_S = 90
GAMMA_MATCH_S = 20
CONTOURS_S = 90
REST_S = 20
FRAME_MS = 1000 / 60
LONGEST_MIN = 60


@dataclass(frozen=True)
class Cost:
    """What a study asks for; `warnings` are sentences about what its author may not have meant.

    Attributes
    ----------
    trials_each : int
        Trials of one person, practice and catch trials included.
    minutes_each : float
    fewest_trials_each : int
        The same of someone whose every image is done as early as its target error allows; else `trials_each`.
    fewest_minutes_each : float
    people : int
        How many are wanted, as far as the quotas let them in.
    hours : float
        Of all people together.
    people_an_image : dict
        How many see each image.
    pairs : int
        Pairs of one image and round, which its S parts share.
    pairs_each : int
        Of these, how many one person is asked in a block.
    answers_an_image : int
        The fewest answers that an image will have got, from all who see it.
    coverage : Coverage
        Of the pairs of a block of one round.
    """

    trials_each: int
    minutes_each: float
    fewest_trials_each: int
    fewest_minutes_each: float
    people: int
    hours: float
    people_an_image: dict[str, int]
    pairs: int
    pairs_each: int
    answers_an_image: int
    coverage: Coverage
    warnings: list[str]


def cost(study: Study) -> Cost:
    """Count a study: nothing is shown, the pairs of one round are drawn.

    Examples
    --------
    >>> from vseg.study.schema import parsed
    >>> found = cost(parsed('''
    ... name = "textures"
    ... segments = 2
    ... participants = 30
    ... layout = {grid = 11}
    ... images = [{name = "low", texture = "low"}, {name = "high", texture = "high"}]
    ... '''))
    >>> found.trials_each, found.people_an_image, round(found.minutes_each)
    (1230, {'low': 15, 'high': 15}, 38)
    """
    layout = study.layout.build()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        pairs = Round.of(study, study.images[0].name).drawn()[0]
    pairs_each = -(-len(pairs) // study.design.split)
    trials = study.practice.trials + _blocks_each(study) * (pairs_each + study.catch.per_block)
    fewest = trials - _blocks_each(study) * (pairs_each - study.fewest_pairs)
    minutes, people = _minutes(study, trials), _people(study)
    shares = {image.name: _people_an_image(study, image.name, people) for image in study.images}
    return Cost(
        trials_each=trials,
        minutes_each=minutes,
        fewest_trials_each=fewest,
        fewest_minutes_each=_minutes(study, fewest),
        people=people,
        hours=people * minutes / 60,
        people_an_image=shares,
        pairs=len(pairs),
        pairs_each=pairs_each,
        answers_an_image=_fewest_people(study, people)
        * study.design.blocks
        * min(len(pairs) // study.design.split, study.fewest_pairs),
        coverage=designs.coverage(pairs, segments=study.planned_segments),
        warnings=[
            *(str(warning.message) for warning in caught),
            *_about_people(study, people, minutes),
            *([] if study.design.adaptive else _about_pairs(study, layout, len(pairs))),
            *_about_the_screen(study, layout),
        ],
    )


def _blocks_each(study: Study) -> int:
    """Blocks of one person, over all their images."""
    return study.images_each * study.design.blocks


def _minutes(study: Study, trials: int) -> float:
    timing, blocks = study.timing, _blocks_each(study)
    each = (timing.cue_ms + timing.image_ms + timing.pause_ms) / 1000 + ANSWER_S
    rests = blocks - 1 + (trials // study.breaks.every_trials if study.breaks.every_trials else 0)
    seconds = READING_S + trials * each + blocks * timing.preview_ms / 1000
    seconds += rests * max(REST_S, study.breaks.at_least_s)
    seconds += study.practice.trials * FEEDBACK_S * study.practice.feedback
    seconds += DISTANCE_S * study.calibration.distance
    seconds += GAMMA_MATCH_S * study.calibration.gamma_matches * study.calibration.gamma
    seconds += CONTOURS_S * study.images_each * study.contours.draw
    return seconds / 60


def _people(study: Study) -> int:
    """Those wanted, as far as the quotas of images and conditions let them in."""
    places = 0
    for condition in {image.condition for image in study.images}:
        open_places = sum(study.quota(image.name) for image in study.images if image.condition == condition)
        places += min(open_places, study.assignment.quota_per_condition.get(condition or "", open_places))
    return min(study.participants, places // study.images_each)


def _people_an_image(study: Study, image: str, people: int) -> int:
    return min(study.quota(image), -(-people * study.images_each // len(study.images)))


def _fewest_people(study: Study, people: int) -> int:
    """On the image that the fewest will have seen."""
    even = people * study.images_each // len(study.images)
    return min([even, *(study.quota(image.name) for image in study.images)])


def _about_people(study: Study, people: int, minutes: float) -> list[str]:
    found = []
    if people < study.participants:
        found.append(
            f"The quotas let in {people} of the {study.participants} participants; raise them, or ask for fewer."
        )
    # A whole round of an image is `split` people; only then has every pair been asked.
    a_round = math.lcm(len(study.images) * study.design.split, study.images_each) // study.images_each
    if people % a_round:
        more = -(-people // a_round) * a_round
        split = study.design.split
        shared = f", the pairs of each shared by {split} people" if split > 1 else ""
        found.append(
            f"{people} participants do not divide evenly over {_images(study)}{shared}; take {more}, "
            f"or another multiple of {a_round}."
        )
    if minutes > LONGEST_MIN:
        found.append(
            f"A person needs {minutes:.0f} minutes, and after an hour people tire; "
            "lower design.blocks or design.trials, or share the pairs with design.split."
        )
    return found


def _about_pairs(study: Study, layout: Layout, pairs: int) -> list[str]:
    segments, blocks = study.planned_segments, study.design.blocks
    most = len(layout) * (len(layout) - 1) // 2
    if study.design.pairs == "fresh" and blocks * pairs > most:
        return [
            f"{blocks} blocks of {pairs} fresh pairs ask for {blocks * pairs}, but {layout} has {most}; "
            "some are asked again."
        ]
    if pairs == most:
        return []
    fewest, advised = designs.minimal_trials(layout, segments), designs.recommended_trials(layout, segments)
    if pairs < fewest:
        return [
            f"A block has {pairs} pairs, but {segments} segments on {layout} need at least (K-1)N² = {fewest}, "
            f"and KN² = {advised} are advised; raise design.trials."
        ]
    if pairs < advised:
        return [
            f"A block has {pairs} pairs; for {segments} segments on {layout} KN² = {advised} are advised."
        ]
    return []


def _about_the_screen(study: Study, layout: Layout) -> list[str]:
    found = []
    for name in ("cue_ms", "image_ms"):
        asked = getattr(study.timing, name)
        frames = max(round(asked / FRAME_MS), 1)
        if asked and abs(asked - frames * FRAME_MS) > 1:
            found.append(
                f"timing.{name} is {asked}, no whole number of frames on a screen of 60 Hz, which shows "
                f"{frames * FRAME_MS:.0f} ms."
            )
    if isinstance(layout, Grid):
        display = study.display
        dot, cell = display.dot_px, display.width_px / layout.size
        unit = "px"
        if study.calibration.distance:
            dot, cell, unit = display.dot_deg, display.width_deg / layout.size, "degrees"
        if dot > cell:
            found.append(
                f"A dot of {dot:g} {unit} is larger than a cell of the grid, {cell:.2g} {unit}, so that the dots "
                "of neighbours overlap; make dots smaller or the image larger in [display]."
            )
    return found


def _images(study: Study) -> str:
    return f"{len(study.images)} image{'s' if len(study.images) > 1 else ''}"
