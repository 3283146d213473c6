"""Test that datasets to try models on are written and loaded like exports."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

import vseg
from vseg.errors import InvalidInput, NotFound
from vseg.evaluation import datasets
from vseg.models import Task


def bsds_folder(folder, annotators=3):
    """Write two photographs and their annotations as in BSDS500."""
    folder.mkdir()
    for number in range(2):
        pixels = np.zeros((60, 80, 3), np.uint8)
        pixels[:, 40:] = 200
        Image.fromarray(pixels).save(folder / f"{100 + number}.jpg")
        cell = np.zeros((1, annotators), object)
        for person in range(annotators):
            labels = np.ones((60, 80), np.uint16)
            labels[:, 40 + 2 * person :] = 2
            cell[0, person] = np.array([[(labels,)]], dtype=[("Segmentation", object)])
        savemat(folder / f"{100 + number}.mat", {"groundTruth": cell})
    return folder


def test_a_sample_dataset_is_loaded_like_an_export(samples):
    responses = vseg.load(samples)
    assert responses.images == ["coffee", "rocket"]
    assert responses.participants == ["observer-1", "observer-2"]
    task = Task.load(samples)
    assert task.segments == 2
    assert {name: image.shape for name, image in task.images.items()} == dict.fromkeys(
        ("coffee", "rocket"), (datasets.SIZE_PX, datasets.SIZE_PX, 3)
    )


def test_the_same_seed_gives_the_same_dataset(samples, tmp_path):
    made = {"images": ("coffee", "rocket"), "observers": 2, "blocks": 2, "grid": 6, "segments": 2}
    (tmp_path / "again").mkdir()
    (tmp_path / "other").mkdir()
    datasets.write_sample_dataset(tmp_path / "again", **made)
    datasets.write_sample_dataset(tmp_path / "other", **made, seed=1)
    first, again, other = (
        Task.load(folder).digest for folder in (samples, tmp_path / "again", tmp_path / "other")
    )
    assert first == again != other


def test_annotators_answer_according_to_their_annotation(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    datasets.write_bsds_dataset(bsds_folder(tmp_path / "bsds"), out, grid=6, segments=2)
    task = Task.load(out)
    answers = task.responses
    assert len(answers.participants) == 6  # annotators of two photographs are different participants
    assert set(np.unique(answers.block)) == {0}  # a second block would only repeat the annotation
    first = answers.select(participant="100-a1")
    x = answers.layout.positions[:, 0]
    assert (first.same == ((x[first.i] < 0.5) == (x[first.j] < 0.5))).all()


def test_load_one_image_or_another_number_of_segments(samples):
    task = Task.load(samples, segments=4, image="rocket")
    assert (task.segments, task.responses.images, list(task.images)) == (4, ["rocket"], ["rocket"])


def test_segments_are_required_if_the_study_leaves_them_free(samples, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(samples, copy)
    study = copy / "study/study.toml"
    study.write_text(study.read_text().replace("segments = 2", 'segments = "free"'))
    with pytest.raises(InvalidInput, match="leaves the number of segments free; give the number, such as 3"):
        Task.load(copy)
    assert Task.load(copy, segments=3).segments == 3


def test_a_missing_folder_or_study_is_reported(tmp_path):
    with pytest.raises(NotFound, match="no folder"):
        Task.load(tmp_path / "nowhere")
    with pytest.raises(NotFound, match="without study"):
        Task.load(tmp_path)
