"""compare_expected_errors(): the truth, the photographs of each part, and the ratios."""

import pytest

from bsds import write_bsds
from commands import files, reproduction
from reproduction.annotators.expected_error import ExpectedErrors, closest_maps, select_part
from reproduction.annotators.observers import load_scene
from vseg import Maps
from vseg.errors import InvalidInput
from vseg.sweeps import Table


def test_the_truth_of_one_annotator_is_their_segmentation(tmp_path):
    scene = load_scene(write_bsds(tmp_path), "7", 6)
    one = scene.observer("individual")
    found = closest_maps(one, 3, seed=0)
    assert found.distance_to(Maps.one_hot(scene.layout, one.labels[0], segments=3)) < 1e-3
    everybody = scene.observer("aggregate")
    p = closest_maps(everybody, 4, seed=0).probabilities
    of_annotators = [everybody.error(labels[:, None] == labels) for labels in everybody.labels]
    assert everybody.error(p @ p.T) < 0.6 * min(of_annotators)


def test_ratios_are_those_of_mean_errors():
    rows = [
        {
            "image": image,
            "observer": "individual",
            "trials": 10,
            "estimate": "chooser",
            "expected": e,
            "true": t,
        }
        for image, e, t in (("a", 0.1, 0.2), ("b", 0.3, 0.2))
    ]
    result = ExpectedErrors(Table(rows))
    assert result.ratio(trials=10) == pytest.approx(1.0)
    assert str(result).splitlines()[2].split() == ["chooser,", "individual", "1.00", "1.00"]


def test_parts_do_not_overlap():
    names = [str(number) for number in range(5)]
    assert select_part(names, "tuning") == ["0", "2", "4"]
    assert select_part(names, "held") == ["1", "3"]
    assert select_part(names, "all") == names
    with pytest.raises(InvalidInput, match="Unknown part 'half'"):
        select_part(names, "half")
    with pytest.raises(InvalidInput, match="needs two or more"):
        select_part(["0"], "held")


def test_the_command_measures_chooser_and_posterior(here, capsys):
    write_bsds(here / "b")
    settings = "--grid 4 --segments 2 --trials 32 --posterior --executor threads:1 --out o"
    code, out, error = reproduction(f"expected-error b {settings}", capsys)
    assert (code, error) == (0, "")
    assert [line.rsplit(maxsplit=2)[0] for line in out.splitlines()[2:6]] == [
        f"{estimate}, {observer}"
        for observer in ("aggregate", "individual")
        for estimate in ("chooser", "posterior")
    ]
    assert files(here / "o") >= {"errors.csv", "table.txt"}
    errors = Table.load(here / "o" / "errors.csv")
    for name in ("expected", "true"):
        assert ((errors.column(name) > 0) & (errors.column(name) < 1)).all()
    assert set(errors.column("image")) == {"7"}
