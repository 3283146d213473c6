"""The cost of a study before it runs: trials, minutes and participants, and how well its pairs cover the image."""

import math
import warnings
from dataclasses import dataclass
from statistics import NormalDist

from vseg import designs
from vseg._support.text import format_count
from vseg.data.layout import Grid, Layout
from vseg.designs import Coverage
from vseg.designs.precision import describe_precision
from vseg.errors import VsegWarning
from vseg.study.pictures import get_texture
from vseg.study.schema import Study
from vseg.study.sections import ImageSection
from vseg.study.trials import Round

ANSWER_S = 0.73  # the paper's 1.33 s per trial, less its 300 ms of cue and 300 ms of image
FEEDBACK_S = 1.0
READING_S = 180  # consent, device check, instructions, debriefing
DISTANCE_S = 90
GAMMA_MATCH_S = 20
CONTOURS_S = 90
REST_S = 20
FRAME_MS = 1000 / 60
LONGEST_MIN = 60
MOST_CLIPPED = 0.01  # share of the pixels of a texture; 0.0003 with the paper's parameters


@dataclass(frozen=True)
class StudyCost:
    """What a study needs.

    Attributes
    ----------
    trials_each : int
        Trials of one participant, including practice and catch trials.
    minutes_each : float
        Minutes of one participant.
    min_trials_each : int
        Trials of a participant whose images all end as early as the target error allows; without a target error,
        `trials_each`.
    min_minutes_each : float
        Minutes for that number of trials.
    participants : int
        Participants wanted, limited by the quotas.
    hours : float
        Hours of all participants together.
    participants_per_image : dict of str to int
        Participants who see each image.
    pairs : int
        Pairs in a block of one image and round, before they are split over participants.
    pairs_each : int
        Pairs in a block of one participant.
    min_answers_per_image : int
        Answers about the image with the fewest answers, over all participants.
    coverage : Coverage
        How well the pairs of a block of one round cover the image.
    warnings : list of str
        Settings that the author of the study may not have intended.
    """

    trials_each: int
    minutes_each: float
    min_trials_each: int
    min_minutes_each: float
    participants: int
    hours: float
    participants_per_image: dict[str, int]
    pairs: int
    pairs_each: int
    min_answers_per_image: int
    coverage: Coverage
    warnings: list[str]


def estimate_cost(study: Study) -> StudyCost:
    """Compute what a study needs, from its settings and the pairs of one round.

    Parameters
    ----------
    study : Study

    Returns
    -------
    StudyCost

    Examples
    --------
    >>> from vseg.study.schema import parse_study
    >>> cost = estimate_cost(parse_study('''
    ... name = "textures"
    ... segments = 2
    ... participants = 30
    ... layout = {grid = 11}
    ... images = [{name = "low", texture = "low"}, {name = "high", texture = "high"}]
    ... '''))
    >>> cost.trials_each, cost.participants_per_image, round(cost.minutes_each)
    (1230, {'low': 15, 'high': 15}, 37)
    """
    layout = study.layout.build()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        first_round = Round.from_study(study, study.images[0].name)
        pairs = first_round.draw_pairs()[0]
    pairs_each = -(-len(pairs) // study.design.split)
    trials = study.practice.trials + _blocks_per_participant(study) * (pairs_each + study.catch.per_block)
    fewest = trials - _blocks_per_participant(study) * (pairs_each - study.min_pairs)
    minutes, participants = _estimate_minutes(study, trials), _count_participants(study)
    shares = {image.name: _count_for_image(study, image.name, participants) for image in study.images}
    answers = (
        _count_for_rarest_image(study, participants)
        * study.design.blocks
        * min(len(pairs) // study.design.split, study.min_pairs)
    )
    answers_per_map = answers if study.design.is_pooled else study.design.blocks * len(pairs)
    return StudyCost(
        trials_each=trials,
        minutes_each=minutes,
        min_trials_each=fewest,
        min_minutes_each=_estimate_minutes(study, fewest),
        participants=participants,
        hours=participants * minutes / 60,
        participants_per_image=shares,
        pairs=len(pairs),
        pairs_each=pairs_each,
        min_answers_per_image=answers,
        coverage=designs.coverage(pairs, segments=study.planned_segments, labels=first_round.labels),
        warnings=[
            *(str(warning.message) for warning in caught),
            *_warn_of_participants(study, participants, minutes),
            *([] if study.design.is_adaptive else _warn_of_pairs(study, layout, len(pairs))),
            *([] if study.design.is_adaptive else _warn_of_answers(study, answers_per_map)),
            *_warn_of_screen(study, layout),
            *_warn_of_textures(study),
        ],
    )


def _blocks_per_participant(study: Study) -> int:
    """Return the number of blocks of one participant, over all their images."""
    return study.images_per_participant * study.design.blocks


def _estimate_minutes(study: Study, trials: int) -> float:
    timing, blocks = study.timing, _blocks_per_participant(study)
    trial_s = (timing.cue_ms + timing.image_ms + timing.pause_ms) / 1000 + ANSWER_S
    breaks = blocks - 1
    if study.breaks.every_trials:  # counted anew in each block, without practice; none after its last trial
        per_block = (trials - study.practice.trials) // blocks
        breaks += blocks * ((per_block - 1) // study.breaks.every_trials)
    seconds = READING_S + trials * trial_s + blocks * timing.preview_ms / 1000
    seconds += breaks * max(REST_S, study.breaks.at_least_s)
    seconds += study.practice.trials * FEEDBACK_S * study.practice.feedback
    seconds += DISTANCE_S * study.calibration.distance
    seconds += GAMMA_MATCH_S * study.calibration.gamma_matches * study.calibration.gamma
    seconds += CONTOURS_S * study.images_per_participant * study.contours.draw
    return seconds / 60


def _count_participants(study: Study) -> int:
    """Return the number of participants wanted, limited by the quotas of images and conditions."""
    places = 0
    for condition in {image.condition for image in study.images}:
        open_places = sum(study.quota(image.name) for image in study.images if image.condition == condition)
        places += min(open_places, study.assignment.quota_per_condition.get(condition or "", open_places))
    return min(study.participants, places // study.images_per_participant)


def _count_for_image(study: Study, image: str, participants: int) -> int:
    return min(study.quota(image), -(-participants * study.images_per_participant // len(study.images)))


def _count_for_rarest_image(study: Study, participants: int) -> int:
    """Return the number of participants on the image that the fewest see."""
    even = participants * study.images_per_participant // len(study.images)
    return min([even, *(study.quota(image.name) for image in study.images)])


def _warn_of_participants(study: Study, participants: int, minutes: float) -> list[str]:
    messages = []
    if participants < study.participants:
        messages.append(
            f"The quotas admit {participants} of the {study.participants} participants; raise the quotas, or lower "
            "participants."
        )
    # A complete round of an image takes `split` participants; only then has every pair been tested.
    a_round = (
        math.lcm(len(study.images) * study.design.split, study.images_per_participant)
        // study.images_per_participant
    )
    if participants % a_round:
        more = -(-participants // a_round) * a_round
        split, images = study.design.split, format_count(len(study.images), "image")
        shared = f", the pairs of each split over {split} participants" if split > 1 else ""
        messages.append(
            f"{participants} participants do not divide evenly over {images}{shared}; take {more}, "
            f"or another multiple of {a_round}."
        )
    if minutes > LONGEST_MIN:
        messages.append(
            f"A session takes {minutes:.0f} minutes, and participants tire after an hour; "
            "lower design.blocks or design.trials, or split the pairs over participants with design.split."
        )
    return messages


def _warn_of_pairs(study: Study, layout: Layout, pairs: int) -> list[str]:
    segments, blocks = study.planned_segments, study.design.blocks
    most = len(layout) * (len(layout) - 1) // 2
    if study.design.pairs == "fresh" and blocks * pairs > most:
        return [
            f"{blocks} blocks of {pairs} fresh pairs need {blocks * pairs}, but {layout} has {most}; "
            "some pairs are repeated."
        ]
    if pairs == most:
        return []
    fewest = designs.minimal_trials(layout, segments)
    distinct = blocks * pairs if study.design.pairs == "fresh" else pairs
    if distinct < fewest:
        size = "N²" if isinstance(layout, Grid) else "n"
        return [
            f"An image has {distinct} distinct pairs, but penalised maps of {segments} segments on {layout} need at "
            f"least (K-1){size} = {fewest}; raise design.trials, or use the posterior."
        ]
    return []


def _warn_of_answers(study: Study, answers: int) -> list[str]:
    """Warn if a map, of one participant or, with pooled answers, of all of them, would rest on too few answers."""
    segments = study.planned_segments
    if answers >= (advised := designs.advised_answers(segments)):
        return []
    giver = "All participants together give" if study.design.is_pooled else "A participant gives"
    return [
        f"{giver} {answers} answers about an image; for {segments} segments {advised} are advised. "
        f"{describe_precision(segments, answers)}"
    ]


def _warn_of_screen(study: Study, layout: Layout) -> list[str]:
    messages = []
    for name in ("cue_ms", "image_ms"):
        duration_ms = getattr(study.timing, name)
        frames = max(round(duration_ms / FRAME_MS), 1)
        if duration_ms and abs(duration_ms - frames * FRAME_MS) > 1:
            messages.append(
                f"timing.{name} is {duration_ms}, not a whole number of frames at 60 Hz, where it is shown for "
                f"{frames * FRAME_MS:.0f} ms."
            )
    if isinstance(layout, Grid):
        display = study.display
        dot, cell = display.dot_px, display.width_px / layout.size
        unit = "px"
        if study.calibration.distance:
            dot, cell, unit = display.dot_deg, display.width_deg / layout.size, "degrees"
        if dot > cell:
            messages.append(
                f"A dot of {dot:g} {unit} is larger than a cell of the grid, {cell:.2g} {unit}, so that the dots "
                "of neighbours overlap; make the dots smaller or the image larger in [display]."
            )
    return messages


def _warn_of_textures(study: Study) -> list[str]:
    """Warn if textures would be shown with another contrast or frequency than they are drawn with."""
    if not (names := [image.name for image in study.images if image.texture is not None]):
        return []
    messages, calibration = [], study.calibration
    if calibration.gamma and calibration.image_gamma != 1:
        messages.append(
            f"calibration.image_gamma is {calibration.image_gamma:g}, but the grey levels of textures such as "
            f"{names[0]!r} are luminances, and their contrast is shown as drawn only with image_gamma = 1."
        )
    if not calibration.distance:
        messages.append(
            f"Textures such as {names[0]!r} have their frequency in cycles per degree only where the image is "
            f"{study.display.width_deg:g} degrees wide (display.width_deg), but calibration.distance is off; switch it "
            "on, or make sure of the viewing distance."
        )
    for image in study.images:
        if image.texture is not None and (share := _share_clipped(image)) > MOST_CLIPPED:
            messages.append(
                f"About {share:.0%} of the grey levels of texture {image.name!r} lie outside 0 to 255 and are clipped, "
                "so that its contrast is not rms_contrast; lower rms_contrast, or bring mean_grey closer to 128."
            )
    return messages


def _share_clipped(image: ImageSection) -> float:
    """Return the expected share of the pixels of a texture that are black or white because they are out of range."""
    texture = get_texture(image)
    normal = NormalDist(texture.mean_grey, texture.rms_contrast)
    return normal.cdf(-0.5) + 1 - normal.cdf(255.5)
