"""Every picture of a study is rendered as PNG, with its true maps if vseg generated it."""

import hashlib
import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from PIL import Image

from strategies import layouts
from vseg.data.layout import Grid
from vseg.errors import InvalidInput, NotFound
from vseg.study.pictures import PRACTICE_COLOURS, practice_labels, render_pictures
from vseg.study.schema import Study, parse_study
from vseg.study.sections import PRACTICE_IMAGE


def study(images: str, *, grid=8, more="") -> Study:
    return parse_study(
        f'name = "s"\nsegments = 2\nparticipants = 4\nlayout = {{grid = {grid}}}\nimages = [{images}]\n{more}'
    )


def pixels(picture) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture.png)))


def save_image(path, height, width, mode="RGB"):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).convert(mode).save(path)


@pytest.mark.parametrize(
    ("source", "segments"), [('sample = "coffee"', None), ('texture = "high"', 2), ("colours = 5", 5)]
)
def test_generated_images(source, segments):
    found = render_pictures(study(f'{{name = "a", {source}, seed = 3}}'), ".")
    assert list(found) == ["a", PRACTICE_IMAGE]
    picture = found["a"]
    assert (picture.name, picture.width_px, picture.height_px) == ("a", 512, 512)
    assert picture.sha256 == hashlib.sha256(picture.png).hexdigest()
    assert pixels(picture).shape[:2] == (512, 512)
    assert (None if picture.truth is None else picture.truth.segments) == segments


def test_a_study_always_has_the_same_pictures():
    described = study('{name = "a", texture = "low"}, {name = "b", texture = "low", seed = 1}')
    first, second = render_pictures(described, "."), render_pictures(described, ".")
    assert [p.sha256 for p in first.values()] == [p.sha256 for p in second.values()]
    assert first["a"].sha256 != first["b"].sha256


def test_the_maps_of_colours_match_the_pixels():
    picture = render_pictures(study('{name = "a", colours = 3}'), ".")["a"]
    x, y = Grid(8).pixels(512, 512).astype(int).T
    seen = pixels(picture)[y, x].astype(float)
    labels = picture.truth.labels
    means = np.stack([seen[labels == k].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(seen[:, None] - means, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.95


def shown_mode_cpd(images: list[np.ndarray], width_deg: float) -> float:
    """Return the mode of the log-normal density of frequencies, in cycles per degree at the centre of the shown image.

    log power over log r is a parabola; divided by r its peak is at the mode (S2).
    """
    side = images[0].shape[0]
    window = np.hanning(side)[:, None] * np.hanning(side)
    energy = np.mean([np.abs(np.fft.fft2((im - im.mean()) * window)) ** 2 for im in images], axis=0)
    cycles_per_px = np.hypot(np.fft.fftfreq(side), np.fft.fftfreq(side)[:, None])
    # A screen at distance 1: the image is 2 tan(width / 2) wide, one degree in its middle 2 tan(1/2).
    width, degree = 2 * np.tan(np.deg2rad([width_deg / 2, 0.5]))
    cpd = cycles_per_px * side / width * degree
    edges = 3.5 * 2 ** np.linspace(-1.5, 1.5, 16)
    middle = np.log(np.sqrt(edges[1:] * edges[:-1]))
    rings = [energy[(cpd >= low) & (cpd < high)].mean() for low, high in pairwise(edges)]
    curve, slope, _ = np.polyfit(middle, np.log(rings), 2, w=np.exp(middle))
    return float(np.exp(-(slope - 1) / (2 * curve)))


@pytest.mark.parametrize(
    ("display", "width_deg"),
    [("", 10), ("display = {width_deg = 16, width_px = 600}", 16)],
)
def test_textures_have_their_frequency_at_the_width_that_is_shown(display, width_deg):
    """2.45 cycles per degree; an image drawn for 12.75 degrees would have 3.1 at 10 degrees. Margin 12 %: the standard
    error over sets of six images (measured) is 5 % at 10 degrees."""
    images = ", ".join(f'{{name = "t{seed}", texture = "low", seed = {seed}}}' for seed in range(6))
    found = render_pictures(
        study(images, more=f"practice = {{trials = 0}}\ncatch = {{per_block = 0}}\n{display}"), "."
    )
    drawn = [pixels(picture).astype(float) for picture in found.values()]
    assert shown_mode_cpd(drawn, width_deg) == pytest.approx(2.45, rel=0.12)


def test_every_parameter_of_a_texture_can_be_set():
    """The frequency has the margin of the test above; the spread of the energy over orientations has 20 %."""
    given = (
        '{preset = "high", orientations_deg = [40, 40], spread_deg = 12, mode_cpd = 3.5, bandwidth_oct = 1, '
        "rms_contrast = 20, mean_grey = 100}"
    )
    images = ", ".join(f'{{name = "t{seed}", texture = {given}, seed = {seed}}}' for seed in range(6))
    found = render_pictures(study(images, more="practice = {trials = 0}\ncatch = {per_block = 0}"), ".")
    drawn = [pixels(picture).astype(float) for picture in found.values()]
    assert shown_mode_cpd(drawn, 10) == pytest.approx(3.5, rel=0.12)
    assert [im.mean() for im in drawn] == pytest.approx([100] * 6, abs=0.2)
    assert [im.std() for im in drawn] == pytest.approx([20] * 6, abs=0.3)
    energy = np.mean([np.abs(np.fft.fft2(im - im.mean())) ** 2 for im in drawn], axis=0)
    f = np.fft.fftfreq(512)
    mean_vector = np.sum(energy * np.exp(2j * np.arctan2(-f[:, None], f))) / energy.sum()
    assert np.rad2deg(np.angle(mean_vector)) / 2 == pytest.approx(40, abs=1)
    assert np.rad2deg(np.sqrt(-np.log(np.abs(mean_vector)) / 2)) == pytest.approx(12, rel=0.2)


def test_a_texture_that_the_picture_cannot_show():
    with pytest.raises(
        InvalidInput,
        match=r"image 'a' cannot be drawn with 512 px over 10 degrees .*2\.12 cycles/px.*; lower mode_cpd, or use more",
    ):
        render_pictures(study('{name = "a", texture = {mode_cpd = 60}}'), ".")


@pytest.mark.parametrize(
    ("options", "size"),
    [("", (60, 60)), (", square = false", (90, 60))],
)
def test_files_are_cropped_to_a_square_by_default(tmp_path, options, size):
    save_image(tmp_path / "a.png", 60, 90)
    picture = render_pictures(study(f'{{name = "a", file = "a.png"{options}}}'), tmp_path)["a"]
    assert (picture.width_px, picture.height_px) == size
    assert pixels(picture).shape == (size[1], size[0], 3)
    assert picture.truth is None


@pytest.mark.parametrize(("options", "size"), [("", (1024, 1024)), (", square = false", (1024, 768))])
def test_large_files_are_reduced(tmp_path, options, size):
    save_image(tmp_path / "a.png", 1500, 2000)
    picture = render_pictures(study(f'{{name = "a", file = "a.png"{options}}}'), tmp_path)["a"]
    assert (picture.width_px, picture.height_px) == size


def test_grey_files_stay_grey(tmp_path):
    save_image(tmp_path / "a.png", 64, 64, "L")
    assert pixels(render_pictures(study('{name = "a", file = "a.png"}'), tmp_path)["a"]).shape == (64, 64)


def test_a_missing_file(tmp_path):
    with pytest.raises(NotFound) as error:
        render_pictures(study('{name = "a", file = "no.png"}'), tmp_path)
    assert str(error.value) == (
        f"Study s: there is no file {tmp_path / 'no.png'} for image 'a'; paths are relative to the folder of the "
        "study file."
    )


@pytest.mark.parametrize("content", [b"", b"text", b"\x89PNG\r\n\x1a\n" + 40 * b"x", "half"])
def test_an_invalid_file(tmp_path, content):
    path = tmp_path / "a.png"
    if content == "half":
        save_image(path, 64, 64)
        content = path.read_bytes()[:2000]
    path.write_bytes(content)
    with pytest.raises(
        InvalidInput, match=r"Study s: .*a\.png cannot be read as an image; expected a PNG or JPEG"
    ):
        render_pictures(study('{name = "a", file = "a.png"}'), tmp_path)


def test_an_image_too_small_for_the_grid(tmp_path):
    save_image(tmp_path / "a.png", 31, 31)
    with pytest.raises(InvalidInput) as error:
        render_pictures(study('{name = "a", file = "a.png"}'), tmp_path)
    assert str(error.value) == (
        "Study s: image 'a' has 31x31 px, so that locations of an 8x8 grid lie 3.9 px apart; 4 px are needed: "
        "use a larger image or fewer locations."
    )
    save_image(tmp_path / "a.png", 32, 32)
    render_pictures(study('{name = "a", file = "a.png"}'), tmp_path)


def test_an_unknown_sample():
    with pytest.raises(
        InvalidInput, match="image 'a' has the unknown sample 'cat'; expected one of astronaut, brick"
    ):
        render_pictures(study('{name = "a", sample = "cat"}'), ".")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("practice = {trials = 0}\ncatch = {per_block = 0}", False),
        ("practice = {trials = 0}", True),
        ("catch = {per_block = 0}", True),
    ],
)
def test_the_practice_picture_is_rendered_if_it_is_needed(more, expected):
    assert (PRACTICE_IMAGE in render_pictures(study('{name = "a", colours = 2}', more=more), ".")) is expected


@given(layouts())
def test_practice_has_both_answers_away_from_borders(layout):
    labels, clear = practice_labels(layout)
    counts = np.bincount(labels[clear], minlength=3)
    assert counts.max() >= 2
    assert (counts > 0).sum() >= 2


@pytest.mark.parametrize("grid", [3, 11, 16, 64])
def test_the_practice_picture_has_the_right_colour_around_clear_locations(grid):
    picture = render_pictures(study('{name = "a", colours = 2}', grid=grid), ".")[PRACTICE_IMAGE]
    seen, (labels, clear) = pixels(picture), practice_labels(Grid(grid))
    assert np.array_equal(picture.truth.labels, labels)
    for (x, y), label in zip(Grid(grid).pixels(512, 512)[clear], labels[clear], strict=True):
        around = seen[int(max(y - 9, 0)) : int(y + 10), int(max(x - 9, 0)) : int(x + 10)]
        assert (around == PRACTICE_COLOURS[label]).all()
