"""The starters are valid studies; those of the paper have the paper's settings."""

import numpy as np
import pytest
from PIL import Image

from vseg.errors import Conflict, InvalidInput, NotFound
from vseg.study.cost import estimate_cost
from vseg.study.pictures import load_study_with_pictures
from vseg.study.schema import Study, load_study
from vseg.study.starters import write_study


def load(like: str, folder) -> Study:
    return load_study(write_study("mine", like=like, folder=folder))


@pytest.mark.parametrize("like", ["texture", "natural", "example"])
def test_what_the_papers_experiments_share(like, tmp_path):
    """Methods, 'Experimental Procedure' and 'Experimental Participants'."""
    study = load(like, tmp_path)
    assert (study.name, study.language) == ("mine", "en")
    assert (study.timing.preview_ms, study.timing.cue_ms, study.timing.image_ms) == (3000, 300, 300)
    assert study.timing.pause_ms == 0
    assert study.calibration.distance
    assert study.calibration.gamma
    assert study.practice.trials > 0
    assert study.catch.per_block == 0
    assert study.images_per_participant == 1
    assert estimate_cost(study).warnings == []


def test_the_texture_experiment(tmp_path):
    """K = 2, N = 11, five blocks of KN² = 242 trials, two groups of 15; the median duration was about 40 minutes."""
    study = load("texture", tmp_path)
    assert (study.segments, study.layout.grid, study.design.blocks) == (2, 11, 5)
    assert (study.pairs_per_block, study.design.pairs, study.design.split) == (242, "repeated", 1)
    assert [image.texture for image in study.images] == ["low", "high"]
    assert (study.participants, study.quota("low"), study.quota("high")) == (30, 15, 15)
    assert study.contours.draw
    assert study.calibration.image_gamma == 1
    assert estimate_cost(study).minutes_each == pytest.approx(40, abs=3)


def test_the_experiment_with_natural_images(tmp_path):
    """K free, N = 16, (K-1)N² = 1024 trials over 8 sessions of 128, 8 images, 64 participants."""
    study = load("natural", tmp_path)
    assert (study.segments, study.layout.grid, study.design.blocks) == ("free", 16, 1)
    assert (study.pairs_per_block, study.design.split, estimate_cost(study).pairs_each) == (1024, 8, 128)
    assert (len(study.images), study.participants, study.quota("image-1")) == (8, 64, 8)
    assert study.calibration.image_gamma == 2.2


def test_the_example_session(tmp_path):
    """K = 3, N = 19, one block, one participant."""
    study = load("example", tmp_path)
    assert (study.segments, study.layout.grid, study.design.blocks, study.participants) == (3, 19, 1, 1)
    assert len(study.images) == 1


def test_the_images_of_the_natural_study_are_the_researchers_own(tmp_path):
    path = write_study("mine", like="natural", folder=tmp_path)
    folder = tmp_path / "mine-images"
    with pytest.raises(NotFound) as error:
        load_study_with_pictures(path)
    assert str(error.value) == (
        f"Study mine: 8 image files are missing, from {folder / '1.jpg'} to {folder / '8.jpg'}; put your images there, "
        "or change the paths in the study file."
    )
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(1, 9):
        Image.fromarray(rng.integers(0, 256, (96, 128, 3), np.uint8)).save(folder / f"{number}.jpg")
    _, _, pictures = load_study_with_pictures(path)
    assert [(pictures[f"image-{n}"].width_px, pictures[f"image-{n}"].height_px) for n in range(1, 9)] == [
        (96, 96)
    ] * 8


@pytest.mark.parametrize("like", ["commented", "patches", "photographs"])
def test_the_other_starters_can_be_served(like, tmp_path):
    _, study, pictures = load_study_with_pictures(write_study("mine", like=like, folder=tmp_path))
    assert {image.name for image in study.images} <= set(pictures)
    assert estimate_cost(study).warnings == []


def test_wrong_arguments(tmp_path):
    with pytest.raises(
        InvalidInput, match=r"Expected a study like commented, texture, natural, .*, got 'film'"
    ):
        write_study("mine", like="film", folder=tmp_path)
    with pytest.raises(InvalidInput, match="Expected a name of at most 63"):
        write_study("Mine", folder=tmp_path)
    write_study("mine", folder=tmp_path)
    with pytest.raises(Conflict, match=r"mine\.toml exists; choose another name"):
        write_study("mine", like="texture", folder=tmp_path)
