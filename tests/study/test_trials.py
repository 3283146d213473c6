"""The trials of a session follow from the study; the parts of a round test each pair once per block."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from strategies import seeds
from vseg.errors import InvalidInput
from vseg.study.pictures import practice_labels
from vseg.study.schema import Study, parse_study
from vseg.study.sections import PRACTICE_IMAGE
from vseg.study.trials import Round, Trials, Unit, draw_trials

SIZES = {"cat": (400, 300), "dog": (128, 128), PRACTICE_IMAGE: (512, 512)}


def study(layout="{grid = 5}", *, seed=0, practice=4, catch=1, labels=None, **design) -> Study:
    known = "" if labels is None else f", labels = {labels}"
    settings = "".join(f"{key} = {value!r}\n" for key, value in design.items())
    return parse_study(f"""
name = "s"
seed = {seed}
segments = 2
participants = 4
layout = {layout}
images = [{{name = "cat", colours = 2{known}}}, {{name = "dog", colours = 3{known}}}]
practice = {{trials = {practice}}}
catch = {{per_block = {catch}}}
[design]
blocks = 3
{settings}""")


few = settings(max_examples=20)


def rows(found: Trials, **wanted):
    """Return the items of the rows with these values."""
    return [
        n for n in range(len(found)) if all(getattr(found, key)[n] == value for key, value in wanted.items())
    ]


def pair(found: Trials, item: int) -> tuple[int, int]:
    return min(found.i[item], found.j[item]), max(found.i[item], found.j[item])


def list_pairs(found: Trials, image: str, block: int) -> list[tuple[int, int]]:
    return [pair(found, item) for item in rows(found, image=image, block=block)]


studies = st.builds(
    study,
    st.sampled_from(
        ["{grid = 5}", "{grid = 4}", "{points = [[0, 0], [0, 1], [1, 0], [0.6, 0.7], [0.3, 0.4]]}"]
    ),
    seed=seeds,
    practice=st.integers(0, 12),
    catch=st.integers(0, 4),
    name=st.sampled_from(["covering", "balanced", "scattered", "all"]),
    pairs=st.just("repeated"),
    split=st.integers(1, 3),
)


@given(studies, st.integers(0, 3))
@few
def test_the_parts_of_a_round_test_each_pair_once_per_block(study, number):
    split = study.design.split
    parts = [draw_trials(study, [Unit("cat", number * split + part)], SIZES) for part in range(split)]
    whole = Counter(Round.from_study(study, "cat", number).draw_pairs()[0])
    for block in range(3):
        assert Counter(p for part in parts for p in list_pairs(part, "cat", block)) == whole
    sizes = [len(list_pairs(part, "cat", 0)) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("split", [1, 4])
def test_fresh_pairs_differ_in_every_block(split):
    described = study("{grid = 8}", pairs="fresh", split=split, catch=0)
    parts = [draw_trials(described, [Unit("cat", part)], SIZES) for part in range(split)]
    blocks = [[p for part in parts for p in list_pairs(part, "cat", block)] for block in range(3)]
    assert [len(block) for block in blocks] == [128, 128, 128]
    assert len({p for block in blocks for p in block}) == 384


def test_repeated_pairs_are_in_another_order_in_each_block():
    found = draw_trials(study(split=2), [Unit("cat", 1)], SIZES)
    first, second = list_pairs(found, "cat", 0), list_pairs(found, "cat", 1)
    assert set(first) == set(second)
    assert first != second


@given(studies, st.integers(0, 20))
@few
def test_a_unit_always_has_the_same_trials(study, number):
    again = validate_again(study)
    assert draw_trials(study, [Unit("cat", number)], SIZES) == draw_trials(
        again, [Unit("cat", number)], SIZES
    )


def validate_again(study: Study) -> Study:
    return Study.model_validate(study.model_dump())


@given(studies)
@few
def test_the_pairs_of_an_image_do_not_depend_on_its_position_in_the_session(study):
    one = draw_trials(study, [Unit("cat", 3), Unit("dog", 1)], SIZES)
    other = draw_trials(study, [Unit("dog", 1), Unit("cat", 3)], SIZES)
    for image in ("cat", "dog"):
        for block in range(3):
            assert list_pairs(one, image, block) == list_pairs(other, image, block)


def test_rounds_images_and_seeds_have_different_pairs():
    drawn = [
        frozenset(list_pairs(draw_trials(study(seed=seed), [Unit(image, unit)], SIZES), image, 0))
        for seed in (0, 1)
        for image in ("cat", "dog")
        for unit in (0, 1, 2)
    ]
    assert len(set(drawn)) == 12


@given(studies)
@few
def test_every_location_is_tested(study):
    split = study.design.split
    found = [draw_trials(study, [Unit("cat", part)], SIZES) for part in range(split)]
    tested = {end for part in found for p in list_pairs(part, "cat", 0) for end in p}
    assert tested == set(range(len(study.layout.build())))


@given(studies)
@few
def test_practice_comes_first_then_image_by_image_and_block_by_block(study):
    found = draw_trials(study, [Unit("dog", 0), Unit("cat", 2)], SIZES)
    practice = study.practice.trials
    assert found.practice == [True] * practice + [False] * (len(found) - practice)
    assert set(found.image[:practice]) <= {PRACTICE_IMAGE}
    image = "dog"
    for item in range(practice, len(found)):
        if found.trial[item] == 0:
            image = found.image[item]  # a catch trial is never first
            assert not found.catch[item]
        else:
            assert (found.block[item], found.trial[item]) == (
                found.block[item - 1],
                found.trial[item - 1] + 1,
            )
        assert found.image[item] == (PRACTICE_IMAGE if found.catch[item] else image)
    starts = [(found.image[n], found.block[n]) for n in range(practice, len(found)) if found.trial[n] == 0]
    assert starts == [(image, block) for image in ("dog", "cat") for block in range(3)]
    assert sum(found.catch) == 6 * study.catch.per_block


@given(studies)
@few
def test_known_answers_match_the_practice_image(study):
    found = draw_trials(study, [Unit("cat", 0)], SIZES)
    known = [n for n in range(len(found)) if found.practice[n] or found.catch[n]]
    assert [n for n in range(len(found)) if found.answer[n] is not None] == known
    labels, clear = practice_labels(study.layout.build())
    assert all(found.answer[n] == (labels[found.i[n]] == labels[found.j[n]]) for n in known)
    assert all(clear[found.i[n]] and clear[found.j[n]] for n in known)
    assert all((found.image[n] == PRACTICE_IMAGE) == (n in known) for n in range(len(found)))


def test_practice_has_both_answers_equally_often():
    found = draw_trials(study("{grid = 16}", practice=10), [Unit("cat", 0)], SIZES)
    assert Counter(found.answer[:10]) == {True: 5, False: 5}


def test_dots_lie_on_their_locations_and_either_may_be_the_first():
    described = study("{grid = 8}")
    found = draw_trials(described, [Unit("cat", 0)], SIZES)
    centres = {name: described.layout.build().pixels(*size) for name, size in SIZES.items()}
    for n in range(len(found)):
        positions = centres[found.image[n]]
        assert np.allclose(positions[found.i[n]], (found.x1[n], found.y1[n]), atol=0.01)
        assert np.allclose(positions[found.j[n]], (found.x2[n], found.y2[n]), atol=0.01)
    forwards = sum(i < j for i, j in zip(found.i, found.j, strict=True)) / len(found)
    assert 0.4 < forwards < 0.6


@given(studies, st.integers(0, 5))
@few
def test_json_round_trip(study, unit):
    found = draw_trials(study, [Unit("cat", unit)], SIZES)
    assert Trials.from_json(found.to_json()) == found


def test_only_the_answers_of_practice_trials_are_sent():
    found = draw_trials(study(practice=4, catch=3), [Unit("cat", 0)], SIZES)
    wire = found.to_wire()
    assert wire["answer"] == found.answer[:4] + [None] * (len(found) - 4)
    assert set(wire) == set(vars(found)) - {"catch"}
    others = [name for name in wire if name != "answer"]
    assert {name: wire[name] for name in others} == {name: getattr(found, name) for name in others}
    assert None not in found.answer[:4]
    assert set(map(len, wire.values())) == {len(found)}


def test_columns_of_different_length():
    with pytest.raises(InvalidInput, match="columns of equal length"):
        Trials(image=["a"])


def test_oracle_pairs_follow_from_the_labels_of_each_image():
    labels = [location % 2 for location in range(16)]
    described = study("{grid = 4}", name="oracle", labels=labels, trials=16, catch=0)
    found = draw_trials(described, [Unit("cat", 0)], SIZES)
    answers = Counter()
    for i, j in list_pairs(found, "cat", 0):
        answers[i, labels[j]] += 1
        answers[j, labels[i]] += 1
    assert set(answers.values()) == {1}
    assert len(answers) == 32  # each location has one partner in each of the two segments
    assert validate_again(described) == described
