"""The cost of a study agrees with the trials that its participants get."""

import pytest
from hypothesis import given, settings, strategies as st

from vseg.study.cost import estimate_cost
from vseg.study.schema import Study, parse_study
from vseg.study.trials import Unit, draw_trials


def study(more="", *, images=2, segments="2", grid=8, participants=8) -> Study:
    listed = ", ".join(f'{{name = "i{n}", colours = 2, condition = "c{n % 2}"}}' for n in range(images))
    return parse_study(
        f'name = "s"\nsegments = {segments}\nparticipants = {participants}\nlayout = {{grid = {grid}}}\n'
        f"images = [{listed}]\n{more}"
    )


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 5),
    st.integers(0, 3),
    st.sampled_from(["between", "within"]),
)
@settings(max_examples=20)
def test_trials_are_those_of_the_longest_session(blocks, split, practice, catch, assignment):
    described = study(
        f"design = {{blocks = {blocks}, split = {split}}}\npractice = {{trials = {practice}}}\n"
        f'catch = {{per_block = {catch}}}\nassignment = {{images = "{assignment}"}}'
    )
    sizes = {image.name: (512, 512) for image in described.images}
    drawn = [
        draw_trials(
            described,
            [Unit(image.name, part) for image in described.images[: described.images_per_participant]],
            sizes,
        )
        for part in range(split)
    ]
    assert estimate_cost(described).trials_each == max(map(len, drawn))


def test_the_duration_of_the_paper_s_experiment():
    """At 1.33 s per trial, 5 blocks of 242 trials take 27 minutes; instructions and breaks are added."""
    bare = study("calibration = {distance = false, gamma = false}\nbreaks = {every_trials = 0}", grid=11)
    assert 27 < estimate_cost(bare).minutes_each < 33
    assert estimate_cost(bare).minutes_each < estimate_cost(study(grid=11)).minutes_each < 40


@pytest.mark.parametrize(("every", "breaks"), [(0, 1), (12, 5), (13, 3), (14, 3), (26, 1), (27, 1)])
def test_breaks_are_counted_in_each_block_without_practice(every, breaks):
    """Two blocks of 26 trials: one break between them, and in each one after every `every` trials but the last."""
    of_blocks = "design = {blocks = 2, trials = 24}\ncatch = {per_block = 2}\npractice = {trials = 6}\n"
    without, with_breaks = (
        estimate_cost(
            study(f"{of_blocks}breaks = {{every_trials = {count}, at_least_s = 60}}", images=1, grid=4)
        )
        for count in (0, every)
    )
    assert with_breaks.minutes_each - without.minutes_each == pytest.approx(breaks - 1)


def test_participants_per_image():
    found = estimate_cost(study(participants=8))
    assert (found.participants, found.participants_per_image) == (8, {"i0": 4, "i1": 4})
    assert found.hours == pytest.approx(8 * found.minutes_each / 60)
    assert found.min_answers_per_image == 4 * 5 * 128
    within = estimate_cost(study('assignment = {images = "within"}'))
    assert within.participants_per_image == {"i0": 8, "i1": 8}


@pytest.mark.parametrize(
    ("more", "options", "warning"),
    [
        (
            "",
            {"participants": 9},
            "9 participants do not divide evenly over 2 images; take 10, or another multiple of 2.",
        ),
        (
            "design = {split = 3}",
            {},
            "8 participants do not divide evenly over 2 images, the pairs of each split over 3 participants; take 12, "
            "or another multiple of 6.",
        ),
        (
            "assignment = {quota_per_image = 2}",
            {},
            "The quotas admit 4 of the 8 participants; raise the quotas, or lower participants.",
        ),
        ("assignment = {quota_per_condition = {c0 = 1}}", {}, "The quotas admit 5 of the 8 participants;"),
        (
            "",
            {"segments": "5", "grid": 16},
            "minutes, and participants tire after an hour; lower design.blocks",
        ),
        (
            "design = {trials = 60}",
            {},
            "60 distinct pairs, but penalised maps of 2 segments on an 8x8 grid need at least (K-1)N² = 64;",
        ),
        (
            "design = {trials = 80, blocks = 2}",
            {},
            "A participant gives 160 answers about an image; for 2 segments 200 are advised. With 160 answers, expect",
        ),
        (
            "design = {trials = 64, blocks = 1, split = 2}",
            {},
            "All participants together give 128 answers about an image; for 2 segments 200 are advised.",
        ),
        (
            "timing = {image_ms = 310}",
            {},
            "timing.image_ms is 310, not a whole number of frames at 60 Hz",
        ),
        ("display = {dot_deg = 2}", {}, "A dot of 2 degrees is larger than a cell of the grid, 1.2 degrees"),
        (
            "calibration = {distance = false}\ndisplay = {dot_px = 65}",
            {},
            "A dot of 65 px is larger than a cell",
        ),
        (
            'design = {pairs = "fresh", blocks = 15}',
            {},
            "pairs repeat those of an earlier block although new ones were",
        ),
        (
            'design = {pairs = "fresh"}',
            {"grid": 4},
            "5 blocks of 32 fresh pairs need 160, but a 4x4 grid has 120; some pairs are repeated",
        ),
    ],
)
def test_warnings(more, options, warning):
    assert [found for found in estimate_cost(study(more, **options)).warnings if warning in found]


@pytest.mark.parametrize(
    ("more", "warnings"),
    [
        ("calibration = {image_gamma = 1}", []),
        ("calibration = {gamma = false}", []),
        ("", ["calibration.image_gamma is 2.2, but the grey levels of textures such as 'i0' are luminances"]),
        (
            "calibration = {distance = false, image_gamma = 1}",
            ["'i0' have their frequency in cycles per degree only where the image is 10 degrees wide"],
        ),
    ],
)
def test_warnings_of_textures(more, warnings):
    images = [{"name": f"i{n}", "texture": "low"} for n in range(2)]
    described = Study.model_validate(study(more).model_dump() | {"images": images})
    found = estimate_cost(described).warnings
    assert len(found) == len(warnings)
    assert all(expected in actual for expected, actual in zip(warnings, found, strict=True))


@pytest.mark.parametrize(
    ("texture", "warning"),
    [
        ({"rms_contrast": 35}, None),
        ({"rms_contrast": 45}, None),
        ({"mean_grey": 0}, "About 49% of the grey levels of texture 'i' lie outside 0 to 255"),
        ({"rms_contrast": 128}, "About 32% of the grey levels of texture 'i' lie outside 0 to 255"),
    ],
)
def test_a_warning_of_grey_levels_that_are_clipped(texture, warning):
    """The expected shares are those of a normal distribution: a half without rounding, and 2 x 0.159 beyond one s.d."""
    images = [{"name": "i", "texture": texture}]
    settings = study("calibration = {image_gamma = 1}", images=1).model_dump() | {"images": images}
    found = estimate_cost(Study.model_validate(settings)).warnings
    assert [one.startswith(warning or "") for one in found] == [True] * (warning is not None)


@pytest.mark.parametrize("ms", [0, 17, 33, 50, 100, 150, 200, 250, 300, 500])
def test_whole_numbers_of_frames_give_no_warning(ms):
    assert estimate_cost(study(f"timing = {{cue_ms = {ms}}}")).warnings == []


def test_a_small_grid_tests_all_its_pairs_and_needs_as_many_answers_as_others():
    few, enough = (
        estimate_cost(study(f"design = {{blocks = {blocks}}}", grid=3, segments='"free"'))
        for blocks in (5, 14)
    )
    assert few.pairs == 36
    assert [
        warning for warning in few.warnings if "180 answers about an image; for 5 segments 500 are" in warning
    ]
    assert not [warning for warning in [*few.warnings, *enough.warnings] if "distinct pairs" in warning]
    assert not [warning for warning in enough.warnings if "advised" in warning]


def test_the_smallest_and_largest_cost_of_an_adaptive_study():
    found = estimate_cost(
        study('design = {name = "adaptive", trials = 100, target_error = 0.1, least_trials = 30}', images=1)
    )
    assert (found.trials_each, found.min_trials_each) == (10 + 100 + 2, 10 + 30 + 2)
    assert found.min_minutes_each < found.minutes_each
    assert found.min_answers_per_image == 8 * 30
    fixed = estimate_cost(study("design = {blocks = 2}", images=1))
    assert fixed.min_trials_each == fixed.trials_each
    assert fixed.min_minutes_each == fixed.minutes_each
