"""compare_groups(): the same files and numbers as `vseg groups`, from folders or from fits in memory."""

import json
import warnings

import pytest
from scipy.stats import ttest_ind, ttest_rel

import vseg
from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation.group_tests import cohens_d
from workflows.conftest import simulate_participants
from workflows.folders import read_folder

pytestmark = pytest.mark.slow


def fit(entropy, names, **settings):
    responses = simulate_participants(entropy, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # whether chains agree is not the question here
        return vseg.fit_dataset(
            responses, segments=2, by="participant", method="posterior", draws=16, seed=0, **settings
        )


@pytest.fixture(scope="module")
def low():
    return fit(0.1, "abc")


@pytest.fixture(scope="module")
def high():
    return fit(0.5, "def")


def test_python_and_the_command_write_the_same(low, high, command, here):
    low.save("low")
    high.save("high")
    printed, _ = command("groups low high --out command")
    compared = vseg.compare_groups("low", "high")
    compared.save("python")
    assert read_folder(here / "python") == read_folder(here / "command")
    assert printed.splitlines()[0] == str(compared)
    in_memory = vseg.compare_groups(low, high, names=("low", "high"))
    assert in_memory.summary() == compared.summary()
    assert in_memory.groups == compared.groups


def test_one_fit_and_a_table_of_groups(here, command):
    everyone = fit(0.3, "abcdef")
    everyone.save("fit")
    groups = dict(zip("abcdz", ["x", "x", "y", "y", "y"], strict=True))
    (here / "groups.csv").write_text("participant,group\n" + "".join(f"{a},{b}\n" for a, b in groups.items()))
    _, shown = command("groups fit --table groups.csv --out command")
    with pytest.warns(VsegWarning) as caught:
        compared = vseg.compare_groups("fit", groups="groups.csv")
    compared.save("python")
    assert read_folder(here / "python") == read_folder(here / "command")
    assert shown.splitlines() == [f"vseg: warning: {warning.message}" for warning in caught]
    assert "e and f of fit are not in groups.csv and are left out." in shown
    assert "groups.csv also names z, who is not in fit." in shown
    with pytest.warns(VsegWarning):
        in_memory = vseg.compare_groups(everyone, groups=groups)
    assert in_memory.comparison == compared.comparison
    assert list(in_memory.groups) == ["x", "y"]


def test_fits_with_other_settings_are_compared_with_a_warning(low, tmp_path):
    estimated = fit(0.5, "def", lapses=(0.02, 0.05))
    with pytest.warns(VsegWarning, match=r"first assumed no lapses, second took lapses to be 0.02 and 0.05"):
        compared = vseg.compare_groups(low, estimated)
    compared.save(tmp_path)
    about = json.loads((tmp_path / "comparison.json").read_text("utf-8"))
    assert [fit["lapses"] for fit in about["fits"].values()] == ["none", [0.02, 0.05]]


def fit_penalised(entropy, names, **settings):
    responses = simulate_participants(entropy, names)
    return vseg.fit_dataset(responses, segments=2, by="participant", **{"smoothness": 0.0} | settings, seed=0)


def test_penalised_fits_are_compared_by_welchs_test(command, here):
    """The reference is SciPy's test of the entropies in the fits' own tables."""
    low, high = fit_penalised(0.1, "abcd"), fit_penalised(0.5, "efgh")
    low.save("low")
    high.save("high")
    printed, _ = command("groups low high --out command")
    compared = vseg.compare_groups("low", "high")
    compared.save("python")
    assert read_folder(here / "python") == read_folder(here / "command")
    assert printed.splitlines()[0] == str(compared)
    entropies = [[row["mean_entropy"] for row in each.rows] for each in (low, high)]
    expected = ttest_ind(entropies[1], entropies[0], equal_var=False)
    assert compared.welch.welch.t == pytest.approx(expected.statistic)
    assert compared.welch.welch.p == pytest.approx(expected.pvalue)
    assert compared.comparison.p == pytest.approx(expected.pvalue)
    assert compared.welch.cohens_d == cohens_d(*entropies)
    assert "Welch t(" in printed
    assert "(penalised estimator, λ = 0)" in printed
    about = json.loads((here / "python/comparison.json").read_text("utf-8"))
    assert about["welch"]["cohens_d"]["value"] == compared.welch.cohens_d.value
    assert [each["method"] for each in about["fits"].values()] == ["penalised"] * 2
    in_memory = vseg.compare_groups(low, high, names=("low", "high"))
    assert in_memory.summary() == compared.summary()


def test_the_same_participants_penalised_fits_are_also_compared_with_themselves():
    low, high = fit_penalised(0.1, "abcd"), fit_penalised(0.5, "abcd")
    compared = vseg.compare_groups(low, high)
    entropies = [[row["mean_entropy"] for row in each.rows] for each in (low, high)]
    assert compared.comparison.paired
    assert compared.comparison.p == pytest.approx(ttest_rel(*entropies).pvalue)
    assert "Welch's test takes the participants of both groups for different ones" in str(compared)


def test_penalised_fits_with_other_settings_are_compared_with_a_warning():
    with pytest.warns(VsegWarning, match=r"first has λ = 0, second λ = 3: fit both with the same settings"):
        vseg.compare_groups(fit_penalised(0.1, "abc"), fit_penalised(0.5, "def", smoothness=3.0))
    with pytest.warns(VsegWarning, match="first has the loss squared_error, second cross_entropy"):
        vseg.compare_groups(fit_penalised(0.1, "abc"), fit_penalised(0.5, "def", loss="cross_entropy"))


def test_fits_by_two_methods_or_not_by_participant_are_refused(low):
    mixed = "first was fitted with the method posterior and second with the method penalised"
    with pytest.raises(InvalidInput, match=mixed):
        vseg.compare_groups(low, fit_penalised(0.2, "de"))
    together = vseg.fit_dataset(simulate_participants(0.2, "ab"), segments=2, smoothness=1.0, seed=0)
    with pytest.raises(InvalidInput, match="Expected fits by participant"):
        vseg.compare_groups(low, together)


def test_one_fit_alone_or_twice(low, here):
    low.save("low")
    with pytest.raises(InvalidInput, match="Expected two fits, or one fit and a table"):
        vseg.compare_groups(low)
    with pytest.raises(InvalidInput, match="Both groups are low"):
        vseg.compare_groups("low", "low")
    with pytest.raises(InvalidInput, match="leave the second fit out"):
        vseg.compare_groups(low, "low", groups={"a": "x"})
    with pytest.raises(InvalidInput, match=r"into 1 group \(x\); expected two"):
        vseg.compare_groups(low, groups={"a": "x", "b": "x"})
