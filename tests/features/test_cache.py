"""Test the cache of features on disk."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from vseg import Grid, Scatter, features
from vseg.errors import InvalidInput
from vseg.features.extraction import cache_feature, cache_folder

IMAGE = np.random.default_rng(0).integers(0, 256, (30, 40, 3)).astype(np.uint8)
CALLS = []


def count_calls(image, layout, *, gain=1.0):
    CALLS.append(gain)
    return gain * np.arange(len(layout), dtype=float)[:, None]


@pytest.fixture
def calls():
    CALLS.clear()
    return CALLS


def test_features_are_computed_once_for_each_content(tmp_path, calls):
    feature = cache_feature(count_calls, folder=tmp_path)
    one = feature(IMAGE, Grid(4))
    assert np.array_equal(feature(IMAGE.copy(), Grid(4)), one)
    assert len(calls) == 1
    darker = IMAGE.copy()
    darker[0, 0, 0] ^= 1
    feature(darker, Grid(4))
    feature(IMAGE, Grid(5))
    feature(IMAGE, Scatter(Grid(4).positions))
    cache_feature(partial(count_calls, gain=2.0), folder=tmp_path)(IMAGE, Grid(4))
    cache_feature(count_calls, settings="other weights", folder=tmp_path)(IMAGE, Grid(4))
    assert len(calls) == 6
    cache_feature(count_calls, folder=tmp_path)(IMAGE, Grid(4))
    assert len(calls) == 6


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"rubbish"])
def test_a_damaged_file_is_replaced(tmp_path, calls, damage):
    feature = cache_feature(count_calls, folder=tmp_path)
    one = feature(IMAGE, Grid(4))
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert np.array_equal(feature(IMAGE, Grid(4)), one)
    assert np.array_equal(feature(IMAGE, Grid(4)), one)
    assert len(calls) == 2


def test_a_file_with_another_shape_is_replaced(tmp_path, calls):
    feature = cache_feature(count_calls, folder=tmp_path)
    feature(IMAGE, Grid(4))
    (file,) = tmp_path.iterdir()
    np.save(file, np.zeros((3, 1)))
    assert feature(IMAGE, Grid(4)).shape == (16, 1)


def test_named_features_have_the_same_values(tmp_path):
    feature = cache_feature("lab+contrast", folder=tmp_path)
    for _ in range(2):
        assert np.array_equal(feature(IMAGE, Grid(4)), features.extract("lab+contrast", IMAGE, Grid(4)))
    assert feature.__name__ == "lab+contrast"
    assert np.array_equal(features.extract(feature, IMAGE, Grid(4)), feature(IMAGE, Grid(4)))


def test_concurrent_writers_leave_one_complete_file(tmp_path):
    feature = cache_feature("rgb", folder=tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: feature(IMAGE, Grid(4)), range(32)))
    assert all(np.array_equal(each, found[0]) for each in found)
    assert [file.suffix for file in tmp_path.iterdir()] == [".npy"]


def test_an_unwritable_folder_is_ignored(tmp_path, calls):
    (tmp_path / "file").write_text("")
    feature = cache_feature(count_calls, folder=tmp_path / "file" / "folder")
    assert feature(IMAGE, Grid(4)).shape == (16, 1)


def test_the_default_folder_is_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "vseg" / "features"
    cache_feature("rgb")(IMAGE, Grid(4))
    assert len(list(cache_folder().iterdir())) == 1


def test_invalid_features_are_refused():
    with pytest.raises(InvalidInput, match="Expected a feature by name or as a function, got list"):
        cache_feature([1, 2])
    with pytest.raises(InvalidInput, match="There are no features 'taste'"):
        cache_feature("taste")
