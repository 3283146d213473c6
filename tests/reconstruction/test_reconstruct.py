import json

import numpy as np
import pytest

import vseg
from vseg import Grid, Maps, Responses
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.reconstruction.smoothness_selection import (
    KERNELS,
    STRENGTHS,
    KernelComparison,
    SmoothnessPath,
    compare_kernels,
    cross_validate,
    log_likelihood,
)


def simulated(layout=None, *, segments=3, entropy=0.3, blocks=5, seed=0, **who):
    layout = layout or Grid(10)
    truth = vseg.stimuli.random_maps(layout, segments=segments, entropy=entropy, seed=seed)
    pairs = vseg.designs.scattered(layout, segments=segments, seed=seed + 1)
    return truth, vseg.simulate(truth, pairs, blocks=blocks, seed=seed + 2, **who)


class TestReconstruct:
    def test_maps_come_close_to_the_truth(self):
        """MAE 0..2; at mean entropy 0.3 and five blocks the paper's λ = 10 gives about 0.25."""
        truth, responses = simulated()
        result = vseg.reconstruct(responses, segments=3, seed=0)
        assert vseg.metrics.mae(result.maps, truth) < 0.3
        assert vseg.metrics.label_accuracy(result.maps, truth) > 0.9

    def test_the_parts_add_up(self):
        _, responses = simulated()
        result = vseg.reconstruct(responses, segments=3, smoothness=2.0, seed=0)
        assert result.objective == pytest.approx(result.data_term + result.penalty)
        assert result.smoothness == 2.0
        assert result.path is None
        assert result.converged
        assert (result.pairs, result.trials) == (300, 1500)

    @pytest.mark.parametrize("solver", ["coordinate_descent", "exponentiated_gradient"])
    @pytest.mark.parametrize("loss", ["squared_error", "cross_entropy"])
    def test_every_solver_and_loss(self, solver, loss):
        truth, responses = simulated()
        result = vseg.reconstruct(responses, segments=3, smoothness=2.0, loss=loss, solver=solver, seed=0)
        assert vseg.metrics.label_accuracy(result.maps, truth) > 0.9
        assert (result.solver, result.loss) == (solver, loss)

    def test_order_of_rows_and_of_dots_changes_nothing(self):
        _, responses = simulated()
        order = np.random.default_rng(0).permutation(len(responses))
        shuffled = responses.take(order)
        swapped = Responses(responses.layout, shuffled.j, shuffled.i, shuffled.same)
        first, second = (vseg.reconstruct(r, segments=3, seed=0) for r in (responses, swapped))
        assert np.array_equal(first.maps.probabilities, second.maps.probabilities)

    def test_threads_change_nothing(self):
        _, responses = simulated()
        one, two = (vseg.reconstruct(responses, segments=3, seed=0, threads=t) for t in (1, 2))
        assert np.array_equal(one.maps.probabilities, two.maps.probabilities)

    def test_a_warm_start_saves_sweeps(self):
        _, responses = simulated()
        cold = vseg.reconstruct(responses, segments=3, smoothness=1.0, seed=0)
        warm = vseg.reconstruct(responses, segments=3, smoothness=1.0, start=cold.maps, seed=0)
        assert warm.solution.iterations < cold.solution.iterations
        with pytest.raises(InvalidInput, match="The start has 3 segments on a 10x10 grid; expected 2"):
            vseg.reconstruct(responses, segments=2, start=cold.maps, smoothness=1.0, seed=0)

    def test_a_local_kernel_as_an_array(self):
        _, responses = simulated()
        settings = {"segments": 3, "smoothness": 1.0, "seed": 0}
        four, array = (
            vseg.reconstruct(responses, kernel=kernel, **settings)
            for kernel in ("four", np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
        )
        assert np.array_equal(four.maps.probabilities, array.maps.probabilities)
        assert (array.kernel, array.summary()["kernel"]) == ("array", "array")
        chosen = vseg.reconstruct(responses, segments=3, kernel=np.ones((5, 5)), seed=0)
        assert chosen.path is not None

    def test_options_of_another_solver_are_refused(self):
        _, responses = simulated()
        message = "solver coordinate_descent has no option 'learning_rate'; it has starts, tolerance, max_iterations"
        with pytest.raises(InvalidInput, match=message):
            vseg.reconstruct(responses, segments=3, smoothness=1.0, learning_rate=0.1, seed=0)

    def test_a_scatter_works_the_same(self):
        layout = vseg.Scatter(np.random.default_rng(0).random((120, 2)))
        truth, responses = simulated(layout)
        result = vseg.reconstruct(responses, segments=3, kernel="gaussian:1", seed=0)
        assert vseg.metrics.label_accuracy(result.maps, truth) > 0.85

    def test_progress_counts_every_fit(self):
        _, responses = simulated()
        done = []
        vseg.reconstruct(responses, segments=3, seed=0, progress=done.append)
        assert sum(done) == 5 * len(STRENGTHS)

    def test_summary_and_saved_files(self, tmp_path):
        _, responses = simulated()
        result = vseg.reconstruct(responses, segments=3, seed=0)
        result.save(tmp_path)
        summary = json.loads((tmp_path / "summary.json").read_text())
        wanted = (
            "objective data_term penalty smoothness loss segments iterations converged message mean_entropy "
            "seconds seed version"
        )
        assert set(wanted.split()) <= set(summary)
        assert summary["held_out"]["smoothness"] == list(STRENGTHS)
        loaded = vseg.Maps.load(tmp_path / "maps.npz")
        assert loaded.probabilities == pytest.approx(result.maps.probabilities, abs=1e-15)

    def test_few_pairs_warn_with_the_numbers(self):
        truth = vseg.stimuli.random_maps(Grid(16), segments=3, seed=0)
        pairs = vseg.designs.covering(truth.layout, trials=412, seed=0)
        responses = vseg.simulate(truth, pairs, seed=0)
        sentence = (
            r"Only 412 distinct pairs were tested; 3 segments on a 16x16 grid need at least "
            r"\(K-1\)N² = 512 with this estimator; the posterior has no minimum."
        )
        with pytest.warns(VsegWarning, match=sentence):
            vseg.reconstruct(responses, segments=3, smoothness=1.0, seed=0)

    def test_a_grid_that_is_too_large_is_noticed(self):
        """Locations of a 10x10 grid read as a 12x12 one make a plausible and wrong map."""
        _, responses = simulated()
        wrong = Responses(Grid(12), responses.i, responses.j, responses.same)
        with pytest.warns(VsegWarning) as said:
            result = vseg.reconstruct(wrong, segments=2, smoothness=1.0, seed=0)
        assert "44 of the 144 locations of a 12x12 grid were never tested" in str(said[0].message)
        assert str(said[0].message).endswith("is it a 10x10 grid?")
        assert result.summary()["locations_tested"] == 100

    def test_maps_that_win_nothing_are_mentioned(self):
        responses = vseg.simulate(
            Maps.one_hot(Grid(6), np.zeros(36, int), 2), vseg.designs.covering(Grid(6), segments=3, seed=0),
            seed=0,
        )  # fmt: skip
        result = vseg.reconstruct(responses, segments=3, smoothness=1.0, seed=0)
        assert result.message.startswith("3 segments (1 of which wins a location) from 108 trials")
        assert result.message in repr(result)

    def test_an_always_same_participant_does_not_stop_the_others(self):
        same = vseg.simulate(
            Maps.one_hot(Grid(8), np.zeros(64, int), 2), vseg.designs.covering(Grid(8), segments=3, seed=0),
            participant="bored", seed=0,
        )  # fmt: skip
        _, other = simulated(Grid(8), participant="keen")
        both = vseg.data.responses.concatenate([same, other])
        assert len(vseg.reconstruct_each(both, segments=3, smoothness=10, seed=0)) == 2

    @pytest.mark.parametrize("wrong", ["responses.csv", None, [1, 2]])
    def test_what_is_not_responses(self, wrong):
        with pytest.raises(InvalidInput, match="Expected Responses or a Tally, got"):
            vseg.reconstruct(wrong, segments=3, seed=0)

    def test_not_converged_carries_what_was_reached(self):
        _, responses = simulated()
        with pytest.raises(NotConverged, match="largest number of iterations") as caught:
            vseg.reconstruct(responses, segments=3, smoothness=1.0, max_iterations=2, tolerance=1e-12, seed=0)
        assert caught.value.result.solution.iterations == 2
        assert not caught.value.result.converged

    def test_several_images_are_refused(self):
        _, a = simulated(Grid(4), image="boat")
        _, b = simulated(Grid(4), image="tree")
        both = vseg.data.responses.concatenate([a, b])
        with pytest.raises(InvalidInput, match=r"about 2 images \(boat, tree"):
            vseg.reconstruct(both, segments=3, seed=0)
        assert list(vseg.reconstruct_each(both, by="image", segments=3, seed=0)) == ["boat", "tree"]

    @pytest.mark.parametrize("smoothness", ["smooth", None, "-1", -1])
    def test_bad_smoothness(self, smoothness):
        _, responses = simulated(Grid(4))
        with pytest.raises(InvalidInput, match="number from 0 up"):
            vseg.reconstruct(responses, segments=3, smoothness=smoothness, seed=0)


class TestReconstructEach:
    def test_each_participant_alone(self):
        parts = [simulated(seed=s, participant=f"p{s}")[1] for s in range(2)]
        results = vseg.reconstruct_each(
            vseg.data.responses.concatenate(parts), segments=3, smoothness=1.0, seed=0
        )
        alone = vseg.reconstruct(parts[1], segments=3, smoothness=1.0, seed=0)
        assert list(results) == ["p0", "p1"]
        assert results["p1"].maps == alone.maps

    def test_bad_grouping(self):
        _, responses = simulated(Grid(4))
        with pytest.raises(InvalidInput, match="Cannot reconstruct by 'block'; choose one of participant"):
            vseg.reconstruct_each(responses, by="block", segments=3, seed=0)


class TestCrossValidation:
    def test_no_pair_is_in_both_halves(self):
        """A solver that remembers what it saw must gain nothing on the pairs held out."""
        _, responses = simulated(Grid(6), entropy=0.0, blocks=3)
        tally, seen = responses.tally(), []

        def memorise(problem, start, *, seed):
            tested = problem.tested
            ends = np.repeat(np.arange(len(problem.layout)), np.diff(tested.start))
            seen.append({tuple(sorted(pair)) for pair in zip(ends, tested.partner, strict=True)})
            return vseg.reconstruction.solvers.Solution(np.full((36, 3), 1 / 3), 1, "done", np.zeros(1))

        path = cross_validate(tally, 3, strengths=[1.0], solver=memorise, seed=0, threads=1)
        assert len(seen) == 5
        held_out = [set(tally.pairs) - fold for fold in seen]
        assert set.union(*held_out) == set(tally.pairs)
        assert sum(map(len, held_out)) == len(tally)
        assert path.held_out.shape == (5, 1)

    def test_the_solver_is_given_its_options(self):
        """λ must be chosen with the same algorithm and limits as the final fit."""
        _, responses = simulated(Grid(6))
        path = cross_validate(responses.tally(), 3, strengths=[1.0, 0.1], max_iterations=1, seed=0)
        assert not path.converged
        assert cross_validate(responses.tally(), 3, strengths=[1.0, 0.1], seed=0).converged

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"strengths": []}, "list of numbers from 0 up, got"),
            ({"strengths": [-1.0]}, "list of numbers from 0 up"),
            ({"strengths": [np.nan]}, "list of numbers from 0 up"),
            ({"folds": 0}, "whole number of folds from 2 up, got 0"),
            ({"folds": 2.5}, "got 2.5"),
        ],
    )
    def test_bad_settings(self, settings, sentence):
        _, responses = simulated(Grid(6))
        with pytest.raises(InvalidInput, match=sentence):
            cross_validate(responses.tally(), 3, seed=0, **settings)

    def test_held_out_likelihood_by_hand(self):
        tally = Responses(Grid(3), [0, 0, 0], [1, 1, 1], [1, 1, 0]).tally()
        p = np.full((9, 2), 0.5)
        assert log_likelihood(p, tally) == pytest.approx(3 * np.log(0.5))

    def test_certain_people_need_less_smoothing_than_uncertain_ones(self):
        """No fixed λ suits both: the best one falls as the answers become reliable."""
        chosen = []
        for entropy in (0.02, 0.9):
            _, responses = simulated(Grid(12), entropy=entropy, blocks=5, seed=3)
            chosen.append(vseg.reconstruct(responses, segments=3, seed=0).smoothness)
        assert chosen[0] < chosen[1]

    def test_too_few_pairs_to_hold_out(self):
        responses = Responses(Grid(3), [0, 1], [4, 5], [1, 0])
        with (
            pytest.raises(InvalidInput, match="at least 10 distinct pairs, got 2; give a number"),
            pytest.warns(VsegWarning),
        ):
            vseg.reconstruct(responses, segments=2, seed=0)


class TestChooseKernel:
    def test_the_kernel_and_its_smoothness_are_chosen_on_the_same_folds(self):
        _, responses = simulated(Grid(8), blocks=2)
        chosen = vseg.reconstruct(responses, segments=3, kernel="auto", seed=4)
        given = vseg.reconstruct(responses, segments=3, kernel=chosen.kernel, seed=4)
        assert list(chosen.kernels.paths) == list(KERNELS)
        assert chosen.kernel == chosen.kernels.chosen
        assert np.array_equal(chosen.path.held_out, given.path.held_out)
        assert chosen.maps == given.maps
        assert f"smoothness {chosen.smoothness:g} and kernel {chosen.kernel}, chosen" in chosen.message

    def test_summary_lists_every_kernel(self, tmp_path):
        _, responses = simulated(Grid(8), blocks=2)
        result = vseg.reconstruct(responses, segments=3, kernel="auto", seed=4)
        result.save(tmp_path)
        summary = json.loads((tmp_path / "summary.json").read_text())
        assert summary["kernel"] == result.kernel
        assert [row["kernel"] for row in summary["kernels_table"]] == list(KERNELS)
        (own,) = (row for row in summary["kernels_table"] if row["kernel"] == result.kernel)
        assert own["smoothness"] == summary["smoothness"]
        assert own["log_likelihood_per_trial"] == max(summary["held_out"]["log_likelihood_per_trial"])

    def test_a_kernel_that_is_better_by_chance_is_not_taken(self):
        """The gain over "four" is compared with its standard error over folds."""
        four = np.array([-0.5, -0.4, -0.6, -0.5, -0.45])
        noisy = np.add(four, [0.3, -0.2, -0.2, 0.3, -0.1])  # better by 0.02 with a standard error of 0.11
        clear = np.add(four, [0.02, 0.01, 0.03, 0.02, 0.02])
        paths = {
            name: SmoothnessPath(np.array([1.0]), scores[:, None], True)
            for name, scores in (("four", four), ("eight", noisy), ("gaussian:1", clear))
        }
        assert KernelComparison({name: paths[name] for name in ("four", "eight")}).chosen == "four"
        assert KernelComparison({name: paths[name] for name in ("four", "gaussian:1")}).chosen == "gaussian:1"
        assert KernelComparison({"four": paths["four"]}).chosen == "four"

    def test_on_a_scatter_eight_neighbours_are_not_tried(self):
        _, responses = simulated(vseg.Scatter(np.random.default_rng(0).random((60, 2))))
        comparison = compare_kernels(responses.tally(), 3, strengths=[10.0, 1.0], seed=0)
        assert list(comparison.paths) == [name for name in KERNELS if name != "eight"]

    def test_progress_counts_every_fit(self):
        _, responses = simulated(Grid(6))
        done = []
        vseg.reconstruct(responses, segments=3, kernel="auto", seed=0, progress=done.append)
        assert sum(done) == len(KERNELS) * 5 * len(STRENGTHS)

    def test_a_given_smoothness_means_something_else_for_every_kernel(self):
        _, responses = simulated(Grid(4))
        with pytest.raises(InvalidInput, match=r"leave smoothness 'auto', got 1\.0"):
            vseg.reconstruct(responses, segments=3, kernel="auto", smoothness=1.0, seed=0)

    def test_with_the_number_of_segments(self):
        _, responses = simulated(Grid(8), entropy=0.1, blocks=3)
        choice = vseg.choose_segments(responses, segments=[2, 3], kernel="auto", seed=0)
        for row, candidate in zip(choice.table(), choice.candidates, strict=True):
            assert row["kernel"] == candidate.result.kernel
            assert np.array_equal(candidate.scores, candidate.result.kernels.path.best_folds)


class TestChooseSegments:
    def test_both_rules_find_three(self):
        _, responses = simulated(Grid(14), entropy=0.1, blocks=5, seed=1)
        choice = vseg.choose_segments(responses, segments=range(2, 6), seed=0)
        assert choice.by_likelihood == 3
        assert choice.result.maps.segments == 3
        assert [row["segments"] for row in choice.table()] == [2, 3, 4, 5]
        full = [c.segments for c in choice.candidates if c.segments_won == c.segments]
        assert choice.by_empty_maps == max(full)
        assert choice.message.startswith("K = 3 of 2..5 by held-out likelihood")
        assert choice.candidates[0].held_out < choice.candidates[1].held_out

    def test_a_fixed_smoothness_is_validated_too(self):
        _, responses = simulated(Grid(8), entropy=0.1)
        choice = vseg.choose_segments(responses, segments=[2, 3], smoothness=1.0, seed=0)
        assert {c.result.smoothness for c in choice.candidates} == {1.0}

    def test_nothing_to_choose_from(self):
        _, responses = simulated(Grid(4))
        with pytest.raises(InvalidInput, match=r"such as range\(2, 8\), got \[\]"):
            vseg.choose_segments(responses, segments=[], seed=0)
