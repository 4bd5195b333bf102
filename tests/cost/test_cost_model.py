"""Cost models: what is counted, and that a fit finds what times were made of."""

import numpy as np
import pytest

from tilewise.cost import CostModel, estimate
from tilewise.cost.calibrate import QUICK, calibrate, fit, random_shapes
from tilewise.cost.model import PARTS, far_share, task_features, working_set
from tilewise.cost.sample import Molecule, Sample, kinds_of, measure, products, program, samples, typical
from tilewise.cost.score import scores
from tilewise.equations import parse, plan_program
from tilewise.inspect import inspect
from tilewise.inspect.operations import gemm as product_model
from tilewise.inspect.operations import sort as sort_model
from tilewise.inspect.operations.gemm import GEMM
from tilewise.spaces import Space


def gemms(*shapes, **fields):
    records = np.zeros(len(shapes), GEMM)
    records["m"], records["n"], records["k"] = np.array(shapes).T
    records["c_offset"] = np.arange(len(shapes))
    for key, value in fields.items():
        records[key] = value
    return records


def features_of(records, far=0.0):
    """The features that are not zero, of the first product."""
    row = product_model.product_features(records, far)[0]
    return {name: value for name, value in zip(product_model.FEATURES, row, strict=True) if value}


def sort_features(text, occ=3, vir=5):
    spaces = {"ij": Space.spatial("o", [occ]), "ab": Space.spatial("v", [vir])}
    graph = inspect(plan_program(parse(text), spaces))
    totals = sort_model.sort_features(graph.records, 0.0).sum(axis=0)
    return {name: value for name, value in zip(sort_model.FEATURES, totals, strict=True) if value}


# Features


def test_a_square_product_is_dgemms(monkeypatch):
    all_to_kernel(monkeypatch, 0)
    assert features_of(gemms((200, 300, 300))) == {
        "dgemm: call": 1,
        "dgemm: steps": 200 * 304 * 300,
        "dgemm: a": 200 * 300,
        "dgemm: b": 300 * 300,
        "dgemm: c": 200 * 300,
        "dgemm: c again": 200 * 300,  # the sum is cut once, at 256
    }


def all_to_kernel(monkeypatch, number):
    """Whichever this processor has."""
    monkeypatch.setattr(product_model, "kernels_of", lambda records: np.full(len(records), number))


def test_transposed_operands_are_packed_otherwise(monkeypatch):
    all_to_kernel(monkeypatch, 0)
    flipped = features_of(gemms((200, 300, 100), transpose_a=1, transpose_b=1))
    assert flipped["dgemm: a transposed"] == 200 * 100 and "dgemm: a" not in flipped
    assert flipped["dgemm: b transposed"] == 300 * 100 and "dgemm: b" not in flipped


@pytest.mark.parametrize(
    ("shape", "steps", "rest"), [((6, 80, 10), 6 * 10 * 10, 0), ((7, 83, 10), (6 + 2) * 10 * 10, 7 * 10 * 3)]
)
def test_few_rows_go_in_strips(monkeypatch, shape, steps, rest):
    all_to_kernel(monkeypatch, 1)
    found = features_of(gemms(shape))
    assert (found["few rows: steps"], found.get("few rows: rest", 0)) == (steps, rest)
    assert found["few rows: b"] == shape[1] * shape[2] and "few rows: deep" not in found


def test_streamed_products_go_in_panels(monkeypatch, register_lanes):
    all_to_kernel(monkeypatch, 2)
    found = features_of(gemms((70, 161, 100)))
    # Registers of 4: 13 panels of 12 columns by 4 rows (17, two left); 5 more by 6 rows (11, four left).
    # Of 8: 6 panels of 24, 8 rows at a time (8 and six left), and 17 columns more, which fill a panel.
    panels, downs, odd = {4: (13, 17, 2), 8: (7, 8, 6)}[max(4, register_lanes)]
    more = {4: (11, 4), 8: (0, 0)}[max(4, register_lanes)]
    assert (
        found["streamed: wide"] == 100 * panels * downs and found.get("streamed: middle", 0) == 100 * more[0]
    )
    assert found["streamed: odd"] == 100 * (panels * odd + more[1])
    assert found["streamed: a"] == 2 * 70 * 100  # once for every 144 columns


def test_a_block_is_fresh_for_the_first_product_alone(monkeypatch):
    all_to_kernel(monkeypatch, 0)
    pair = gemms((200, 300, 100), (200, 300, 100), c_offset=0)
    table = product_model.product_features(pair, 0.0)
    first, again = (product_model.FEATURES.index(f"dgemm: {name}") for name in ("c", "c again"))
    assert table[:, first].tolist() == [60000, 0] and table[:, again].tolist() == [0, 60000]


def test_words_are_far_when_tensors_do_not_fit_the_cache(monkeypatch):
    all_to_kernel(monkeypatch, 0)
    assert far_share(10, 20) == 0 and far_share(40, 10) == 0.75 and far_share(0, 10) == 0
    assert features_of(gemms((200, 300, 100)), 0.5)["dgemm: far"] == 0.5 * (20000 + 30000 + 120000)


def test_an_exchange_that_keeps_the_last_axis_is_read_and_written_in_order():
    found = sort_features("input A[ia|jb]\nB[ja|ib] = A[ia|jb]")
    assert found["ordered"] == found["combined"] == found["written"] == 225
    assert found["run"] == 45 and found["row"] == 15 and found["block"] == found["view"] == 1
    assert not {"strided", "scattered", "triangle", "summed"} & set(found)


def test_a_transposition_is_scattered_along_its_longest_axis():
    found = sort_features("input A[ia|jb]\nC[ab|ij] = A[ia|jb]")
    assert found["scattered"] == 225 and found["run"] == 45


def test_packed_pairs_are_read_from_triangles():
    found = sort_features("input T[ab+-|ij+-]\nU[ia|jb] = T[ba|ij]")
    assert found["triangle"] >= 225 and "ordered" not in found


def test_traces_are_summed():
    assert sort_features("input A[ia|jb]\nE[a|b] = A[ia|ib]")["summed"] == 2 * 25


# Fits


def test_a_fit_recovers_the_coefficients_that_made_the_times():
    near, away = (products(random_shapes(300, seed), 1 << 20) for seed in (3, 5))
    rng = np.random.default_rng(0)
    made = CostModel(**{part: {name: rng.uniform(1, 3) for name in names} for part, names in PARTS.items()})
    made_samples = []
    for experiment, far in ((near, 0.0), (away, 0.8), (program(QUICK[0]), 0.0), (program(QUICK[3]), 0.4)):
        features = task_features(experiment.graph, far)
        seconds = sum(features[part] @ made.coefficients(part) for part in PARTS)
        made_samples.append(Sample(features, seconds, kinds_of(experiment.graph)))
    sample = Sample.joined(made_samples)
    found = fit(sample)
    assert max(score.ninetieth for score in scores(found, sample)) < 1e-6
    for feature in ("dgemm: steps", "few rows: steps", "streamed: wide"):
        assert found.gemm[feature] == pytest.approx(made.gemm[feature], rel=1e-4)


def test_a_few_spoilt_measurements_do_not_spoil_a_fit():
    features = task_features(products(random_shapes(300, 4), 1 << 20).graph, 0.0)
    made = CostModel(**{part: dict.fromkeys(names, 1.0) for part, names in PARTS.items()})
    seconds = sum(features[part] @ made.coefficients(part) for part in PARTS)
    seconds[::15] *= 4.0
    found = fit(Sample(features, seconds, np.full(300, "dgemm", object)))
    predicted = sum(features[part] @ found.coefficients(part) for part in PARTS)
    rest = np.arange(300) % 15 != 0
    assert np.median(np.abs(predicted / seconds - 1)[rest]) < 0.02


def test_a_sample_has_the_best_times_and_the_slowness_of_a_typical_round():
    experiment = products(random_shapes(4, 3), 1 << 20)
    kinds = kinds_of(experiment.graph).astype(str)
    best = np.array([1.0, 2.0, 3.0, 4.0])
    experiment.runs = [best, 2.0 * best, 2.0 * best, np.where(kinds == kinds[0], 3.0, 6.0) * best]
    assert samples([experiment])[0].seconds == pytest.approx(2.0 * best)
    experiment.runs = [np.array([1.0, 6.0, 9.0, 8.0]), np.array([3.0, 2.0, 3.0, 4.0])]
    for kind in np.unique(kinds):
        mine = kinds == kind
        mean = np.mean([times[mine].sum() for times in experiment.runs])
        assert samples([experiment])[0].seconds[mine].sum() == pytest.approx(mean)


def test_the_typical_time_leaves_out_the_ends():
    times = np.array([1.0, 2, 3, 4, 5, 5, 4, 3, 4, 1000])
    assert typical(times) == pytest.approx(30 / 8)  # without 1 and 1000
    assert typical(np.stack([times, 2 * times], axis=1)) == pytest.approx([30 / 8, 60 / 8])
    assert typical([3.0]) == 3 and typical([1.0, 3.0]) == 2 and typical([1.0, 3.0, 1e3]) == 3


def test_a_quick_calibration_is_scored_on_other_molecules_kind_by_kind():
    model = calibrate(rounds=3)
    others = [program(Molecule((6,), (30,)))]
    measure(others, 3)
    (sample,) = samples(others)
    by_kind = {score.kind: score for score in scores(model, sample)}
    assert {"sort", "all products", "update", "dot"} <= set(by_kind)
    assert all(0 <= score.median <= score.ninetieth < np.inf for score in by_kind.values())


def test_an_estimate_is_the_sum_over_the_records_of_each_task():
    graph = program(QUICK[0]).graph
    ones = CostModel(**{part: dict.fromkeys(names, 1.0) for part, names in PARTS.items()})
    seconds = estimate(graph, ones, cache=working_set(graph))
    assert seconds.shape == (len(graph),) and (seconds > 0).all()
    assert seconds.sum() == pytest.approx(sum(table.sum() for table in task_features(graph, 0.0).values()))
    assert (estimate(graph, ones, cache=1) >= seconds).all()


def test_random_shapes_are_the_same_for_the_same_seed():
    shapes = random_shapes(50, 7)
    assert shapes.shape == (50, 5) and (shapes[:, :3] >= 1).all()
    assert (shapes == random_shapes(50, 7)).all() and (shapes != random_shapes(50, 8)).any()
