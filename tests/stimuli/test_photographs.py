"""Reading and cropping photographs, samples and BSDS500."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from vseg.data.layout import Grid
from vseg.errors import InvalidInput, NotFound
from vseg.stimuli import SAMPLES, Bsds, crop_square, load_sample, read_image

# 6 rows of 10: the central square is columns 2..7. Labels from 1 up, as in BSDS500, with a gap at 2.
HALVES = np.repeat([[1, 1, 1, 1, 1, 7, 7, 7, 7, 7]], 6, axis=0).astype(np.uint16)
ROWS = np.repeat([[1], [1], [3], [3], [5], [5]], 10, axis=1).astype(np.uint16)


def write_photograph(image_path, truth_path, annotators=(HALVES, ROWS)):
    for path in (image_path, truth_path):
        path.parent.mkdir(parents=True, exist_ok=True)
    picture = np.zeros((6, 10, 3), np.uint8)
    picture[:, 5:] = 200
    Image.fromarray(picture).save(image_path, quality=100, subsampling=0)
    cells = np.empty((1, len(annotators)), object)
    for a, labels in enumerate(annotators):
        cells[0, a] = {"Segmentation": labels, "Boundaries": np.zeros_like(labels)}
    savemat(truth_path, {"groundTruth": cells})


@pytest.fixture
def same_folder(tmp_path):
    for name in ("22", "101"):
        write_photograph(tmp_path / f"{name}.jpg", tmp_path / f"{name}.mat")
    (tmp_path / "stray.jpg").write_bytes(b"")
    return tmp_path


@pytest.fixture
def official(tmp_path):
    for part, name in (("train", "22"), ("test", "101")):
        data = tmp_path / "BSDS500" / "data"
        write_photograph(data / "images" / part / f"{name}.jpg", data / "groundTruth" / part / f"{name}.mat")
    return tmp_path


@pytest.mark.parametrize("folder", ["same_folder", "official"])
def test_bsds_in_one_folder_or_in_the_official_ones(folder, request):
    bsds = Bsds(request.getfixturevalue(folder))
    assert bsds.ids == ["101", "22"]
    assert bsds.image("22").shape == (6, 6, 3)
    assert bsds.image("22", 12).shape == (12, 12, 3)


def test_bsds_labels_are_cropped_as_the_image(same_folder):
    bsds = Bsds(same_folder)
    halves, rows = bsds.labels("22")
    np.testing.assert_array_equal(halves, HALVES[:, 2:8])
    np.testing.assert_array_equal(rows, ROWS[:, 2:8])
    np.testing.assert_array_equal(bsds.labels("22", 12)[0], np.kron(HALVES[:, 2:8], np.ones((2, 2), int)))
    np.testing.assert_array_equal(bsds.image("22")[:, :, 0] > 100, halves == 7)


def test_annotator_maps_are_one_hot_and_renumbered(same_folder):
    halves, rows = Bsds(same_folder).annotator_maps("22", Grid(3))
    assert (halves.segments, rows.segments) == (2, 3)
    assert halves.labels.tolist() == [0, 1, 1] * 3
    assert rows.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert halves.mean_entropy == 0


def test_missing_files_of_bsds(tmp_path, same_folder):
    with pytest.raises(NotFound, match="No folder"):
        Bsds(tmp_path / "nowhere")
    with pytest.raises(NotFound, match="no photograph '7'; it has 2: 101, 22"):
        Bsds(same_folder).image("7")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match="in the same folder"):
        Bsds(tmp_path / "empty")


def test_a_mat_file_of_another_kind(same_folder):
    savemat(same_folder / "22.mat", {"other": np.zeros(3)})
    with pytest.raises(InvalidInput, match=r"22\.mat is not a segmentation file"):
        Bsds(same_folder).labels("22")
    (same_folder / "22.mat").write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match=r"22\.mat is not a segmentation file"):
        Bsds(same_folder).labels("22")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_available_offline(name):
    picture = load_sample(name, 32)
    assert picture.shape[:2] == (32, 32)
    assert picture.dtype == np.uint8


def test_an_unknown_sample():
    with pytest.raises(InvalidInput, match=r"Unknown sample 'dog'.*astronaut.*rocket"):
        load_sample("dog")


def test_the_centre_is_cropped():
    image = np.zeros((4, 8), np.uint8)
    image[:, 2:6] = 255
    np.testing.assert_array_equal(crop_square(image, 4), np.full((4, 4), 255))
    np.testing.assert_array_equal(crop_square(image, 9), np.full((9, 9), 255))


def test_resizing_does_not_alias():
    """A checkerboard of single pixels becomes grey, not a coarser checkerboard."""
    board = (np.indices((64, 64)).sum(axis=0) % 2).astype(float)
    inner = crop_square(board, 20)[3:-3, 3:-3].astype(float)
    np.testing.assert_allclose(inner, 127.5, atol=12)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 2)), "shape"),
        (np.full((4, 4), 2.0), "floats from 0 to 1"),
        (np.full((4, 4), 300), "int64"),
        (np.full((4, 4), np.nan), "nan"),
    ],
)
def test_invalid_images(image, message):
    with pytest.raises(InvalidInput, match=message):
        crop_square(image, 4)


def test_images_are_read_upright_and_without_transparency(tmp_path):
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    turned = Image.fromarray(grey)
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "turned.png"), np.rot90(grey, -1))
    Image.fromarray(np.zeros((3, 4, 4), np.uint8)).save(tmp_path / "clear.png")
    assert read_image(tmp_path / "clear.png").shape == (3, 4, 3)
    Image.fromarray(np.full((3, 4), 51400, np.uint16)).save(tmp_path / "deep.png")
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), np.full((3, 4), 200))


def test_unreadable_images(tmp_path):
    with pytest.raises(NotFound, match="No image"):
        read_image(tmp_path / "none.png")
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(InvalidInput, match="cannot be read as an image"):
        read_image(tmp_path / "text.png")
