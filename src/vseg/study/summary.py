"""summarise_study(): what a study asks of its participants, as labelled sentences."""

from collections.abc import Iterator, Mapping, Sequence

from vseg._support.text import format_count
from vseg.study.cost import StudyCost
from vseg.study.pictures import Picture
from vseg.study.schema import Study

MAX_LISTED = 8


def summarise_study(
    study: Study, pictures: Mapping[str, Picture], cost: StudyCost
) -> Iterator[tuple[str, str]]:
    """Yield labels and sentences about the images, trials, time, participants and data of a study.

    Parameters
    ----------
    study : Study
    pictures : mapping of str to Picture
        The rendered pictures of the study; see `vseg.study.pictures.render_pictures`.
    cost : StudyCost
        The cost of the study; see `vseg.study.cost.estimate_cost`.
    """
    design = study.design
    image_count = format_count(len(study.images), "image")
    yield "Study", f"{study.name}: the file is valid, and its {image_count} can be shown"
    shown = [pictures[image.name] for image in study.images]
    yield "Images", _list_some([f"{each.name} ({each.width_px}x{each.height_px} px)" for each in shown])
    yield "Trials", _describe_trials(study, cost)
    if design.is_adaptive:
        yield "Adaptive", _describe_adaptive_design(study)
    yield "Time", _describe_time(study, cost)
    split = f", its {cost.pairs} pairs split over {design.split} participants" if design.split > 1 else ""
    yield (
        "People",
        f"{cost.participants} wanted; {_describe_participants_per_image(cost.participants_per_image)}{split}",
    )
    if study.segments == "free":
        yield (
            "Segments",
            f"free; {study.planned_segments} are assumed for the number of pairs"
            f"{' and for choosing them' if design.is_adaptive else ''}, and fits choose the number by evidence",
        )
    if not design.is_adaptive:  # adaptive studies use the fixed pairs only when none can be chosen
        yield "Pairs", str(cost.coverage).rstrip(".")
    answers = format_count(cost.min_answers_per_image, "answer")
    yield "Answers", f"{answers} or more for each image, without catch trials"
    if (days := study.privacy.keep_identities_days) is not None:
        yield (
            "Identities",
            f"deleted {format_count(days, 'day')} after a participant's last activity; participants who come back "
            "later are not recognised",
        )
    if "consent" not in study.texts:
        yield (
            "Note",
            "The consent is vseg's example; write your own in [texts], with who you are and how to reach you.",
        )
    for warning in cost.warnings:
        yield "Warning", warning


def _describe_trials(study: Study, cost: StudyCost) -> str:
    has_target = bool(study.design.target_error)
    total = (
        f"at most {cost.trials_each}, at least {cost.min_trials_each}"
        if has_target
        else f"{cost.trials_each}"
    )
    return (
        f"{total} for each participant: {format_count(study.images_per_participant, 'image')}, "
        f"{format_count(study.design.blocks, 'block')} of {format_count(cost.pairs_each, 'pair')} and "
        f"{format_count(study.catch.per_block, 'catch trial')}, "
        f"after {format_count(study.practice.trials, 'practice trial')}"
    )


def _describe_time(study: Study, cost: StudyCost) -> str:
    has_target = bool(study.design.target_error)
    shortest = f"{cost.min_minutes_each:.0f} to " if has_target else ""
    return (
        f"about {shortest}{cost.minutes_each:.0f} minutes for each participant, "
        f"{'at most ' if has_target else ''}{_format_hours(cost.hours)} for all together"
    )


def _describe_adaptive_design(study: Study) -> str:
    design = study.design
    end = "after the last pair"
    if design.target_error is not None:
        end = (
            f"once the expected error is {design.target_error:g} or less, "
            f"but not before {format_count(study.min_pairs, 'pair')}"
        )
    answers = "all participants' answers about it" if design.shared else "the participant's own answers"
    return (
        f"after {format_count(study.initial_pairs, 'fixed pair')} of an image the other pairs are chosen from "
        f"{answers} (rule: {design.rule}); an image is finished {end}"
    )


def _describe_participants_per_image(participants: Mapping[str, int]) -> str:
    counts = set(participants.values())
    if len(counts) == 1:
        return f"{counts.pop()} for {'the image' if len(participants) == 1 else 'each image'}"
    return _list_some([f"{count} for {image}" for image, count in participants.items()])


def _list_some(items: Sequence[str]) -> str:
    """Join the items with commas; of long lists, only the first are named."""
    if len(items) <= MAX_LISTED:
        return ", ".join(items)
    return f"{', '.join(items[:MAX_LISTED])} and {len(items) - MAX_LISTED} more"


def _format_hours(hours: float) -> str:
    if hours < 1:
        return f"{60 * hours:.0f} minutes"
    return f"{hours:.0f} hours" if hours >= 1.5 else "about an hour"
