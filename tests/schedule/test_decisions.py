"""What each policy decides, in small cases worked out by hand; loops against their formulas."""

import heapq
from math import ceil, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from random_programs import bare_graph
from tilewise import policies
from tilewise.errors import InputError
from tilewise.schedule import LevelPolicy, Phase, Rule, Team, policy_named, register
from tilewise.schedule.hypergraph import _is_even
from tilewise.schedule.loops import Loop

COSTS = np.array([8.0, 7, 6, 5, 4, 3, 2, 1])
ONE_LEVEL = bare_graph([0] * 8, [])
EVERY = list(range(8))


def lists(schedule):
    return [queue.tasks.tolist() for queue in schedule.queues]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nxtval", [EVERY]),
        ("ie-nxtval", [EVERY]),
        ("ie-nxtval(quantum=3)", [EVERY]),
        ("levels", [EVERY]),
        ("block", [[0, 1, 2], [3, 4, 5, 6, 7]]),
        ("proportional(speeds=2:1)", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("lpt", [[0, 3, 4, 7], [1, 2, 5, 6]]),
        ("steal", [[0, 3, 4, 7], [1, 2, 5, 6]]),
        ("hypergraph", [[0, 3, 4, 7], [1, 2, 5, 6]]),  # nothing is shared
        ("hybrid", [EVERY]),  # before the first run nothing is known
        ("buckets", [EVERY]),
        ("buckets(size=1)", [[0, 3, 4, 7], [1, 2, 5, 6]]),
        ("interleaved", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("chunk(size=3)", [EVERY]),
        ("gss", [EVERY]),
        ("tss", [EVERY]),
        ("factoring", [EVERY]),
    ],
)
def test_lists_of_eight_tasks_for_two_workers(text, expected):
    assert lists(policy_named(text)(ONE_LEVEL, COSTS, 2)) == expected


def test_a_counter_gives_out_the_longest_tasks_of_each_level_first_if_told_so():
    graph, seconds = bare_graph([0, 0, 0, 1, 1], [(0, 3), (0, 4)]), np.array([1.0, 3, 2, 4, 5])
    assert lists(policies["ie-nxtval"](graph, seconds, 2)) == [[0, 1, 2], [3, 4]]
    sorted_lists = policy_named("ie-nxtval(longest_first=true)")(graph, seconds, 2)
    assert lists(sorted_lists) == [[1, 2, 0], [4, 3]]
    assert "the longest first" in sorted_lists.decision


def test_quantum_rules_and_stealing():
    def queue(text):
        return policy_named(text)(ONE_LEVEL, COSTS, 2).queues[0]

    assert queue("ie-nxtval(quantum=3)").quantum == queue("chunk(size=3)").quantum == 3
    assert queue("factoring(f=4, delta=0.5)").rule == Rule("factoring", 4.0, 0.5)
    assert queue("gss").rule == Rule("guided") and queue("tss").rule == Rule("trapezoid")
    assert queue("chunk(size=0, delta=2, probe=5)").rule == Rule("chunk", delta=2.0, probe=5)
    stealing = {
        text: policy_named(text)(ONE_LEVEL, COSTS, 2).phases[0].steal
        for text in ("lpt", "steal", "buckets", "buckets(size=1, steal=yes)")
    }
    assert list(stealing.values()) == [False, True, False, True]


def test_levels_and_dataflow_go_by_the_longest_path():
    graph = bare_graph([0, 0, 0, 1, 2], [(1, 3), (3, 4)])
    seconds = np.array([1.0, 1, 2.5, 1, 1])
    assert lists(policies["levels"](graph, seconds, 2)) == [[1, 2, 0], [3], [4]]
    schedule = policy_named("dataflow(alike=0)")(graph, seconds, 2)
    assert schedule.by_dataflow and schedule.priority.tolist() == [1.0, 3.0, 2.5, 2.0, 1.0]


def test_dataflow_keeps_the_order_of_tasks_whose_paths_are_alike():
    graph, seconds = bare_graph([0, 0, 0, 0], []), np.array([1.0, 1.001, 1.002, 2.0])
    same, also, still, first = policies["dataflow"](graph, seconds, 2).priority
    assert same == also == still < first
    apart = policy_named("dataflow(alike=0.0001)")(graph, seconds, 2).priority
    assert apart.argsort().tolist() == [0, 1, 2, 3] and len(set(apart)) == 4
    assert policies["dataflow"](graph, np.zeros(4), 2).priority.tolist() == [0, 0, 0, 0]


QUEUES = {
    "one": None,
    "node": ([0, 1, 0, 1], [0, 1], [0, 1, 0, 1, 0, 1, 0, 1]),
    "worker": ([0, 1, 2, 3], [0, 1, 0, 1], [0, 1, 0, 1, 0, 1, 0, 1]),
}


@pytest.mark.parametrize("queues", QUEUES)
def test_ready_tasks_wait_in_one_queue_or_in_that_of_a_node_or_of_a_worker(queues):
    team = Team(4, groups=((0, 2), (1, 3)))
    ready = policy_named(f"dataflow(queues={queues})")(ONE_LEVEL, COSTS, team).ready
    found = ready and (ready.of_worker.tolist(), ready.group.tolist(), ready.home.tolist())
    assert found == QUEUES[queues]


def test_chains_go_to_the_node_that_has_least():
    team = Team(3, speeds=(1.0, 1.0, 2.0), groups=((0, 1), (2,)))
    ready = policy_named("dataflow(queues=node, placement=lpt)")(ONE_LEVEL, COSTS, team).ready
    assert [COSTS[ready.home == group].sum() for group in (0, 1)] == [18.0, 18.0]


def test_groups_of_the_team_are_the_buckets():
    team = Team(4, groups=((0, 2), (1, 3)))
    schedule = policies["buckets"](ONE_LEVEL, COSTS, team)
    assert [queue.workers for queue in schedule.queues] == [(0, 2), (1, 3)]
    assert lists(schedule) == [[0, 3, 4, 7], [1, 2, 5, 6]]
    odd = policy_named("buckets(size=3)")(ONE_LEVEL, COSTS, 4)
    assert [queue.workers for queue in odd.queues] == [(0, 1, 2), (3,)]
    loads = [COSTS[queue.tasks].sum() / len(queue.workers) for queue in odd.queues]
    assert loads[0] == pytest.approx(loads[1], rel=0.2)


def test_proportional_goes_by_the_speeds_of_the_team():
    schedule = policies["proportional"](ONE_LEVEL, COSTS, Team(2, speeds=(1.0, 0.5)))
    assert lists(schedule) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert str(schedule) == "proportional: 1 level, contiguous runs for speeds 1:0.5"


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ((1.0, 1.0), [[0, 3, 4, 7], [1, 2, 5, 6]]),
        ((1.0, 0.5), [[0, 2, 3, 5, 6], [1, 4, 7]]),
        ((0.5, 1.0), [[1, 4, 7], [0, 2, 3, 5, 6]]),
        ((1.0, 0.1), [[0, 1, 2, 3, 4, 6, 7], [5]]),  # no long task for the slow one
        ((1.0, 0.01), [EVERY, []]),
    ],
)
def test_deques_are_filled_by_the_speeds_of_the_team(speeds, expected):
    schedule = policies["steal"](ONE_LEVEL, COSTS, Team(2, speeds))
    assert lists(schedule) == expected
    assert schedule.phases[0].steal


@pytest.mark.parametrize("name", policies)
def test_a_million_tasks(name):
    rng = np.random.default_rng(0)
    graph = bare_graph(np.zeros(10**6, int).tolist(), [])
    seconds = 10.0 ** rng.uniform(-7, -2, 10**6)
    schedule = policies[name](graph, seconds, 64)
    schedule.check(graph)
    assert schedule.makespan(graph, seconds) >= seconds.sum() / 64 * (1 - 1e-12)


# Loops


def chunks(rule, work, workers):
    """Sizes of the chunks, whoever takes them; times are of no account without delta."""
    loop, sizes = Loop(rule, np.asarray(work, float), workers), []
    while True:
        first, last = loop.next(len(sizes) % workers, 0.0)
        if first == last:
            return sizes
        sizes.append(last - first)


@pytest.mark.parametrize(
    ("taking", "expected"),
    [
        ("guided", [2, 1, 1, 1, 1, 1, 1]),
        ("trapezoid", [1, 1, 1, 1, 1, 1, 2]),
        ("factoring", [1, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_chunks_of_eight_tasks(taking, expected):
    assert chunks(Rule(taking), COSTS, 2) == expected


def test_chunks_of_even_loops():
    assert chunks(Rule("guided"), np.ones(16), 4) == [4, 3, 2, 1, 1, 1, 1, 1, 1, 1]
    assert chunks(Rule("factoring"), np.ones(64), 4)[:12] == [8] * 4 + [4] * 4 + [2] * 4
    assert chunks(Rule("factoring", f=4), np.ones(64), 2)[:4] == [8, 8, 6, 6]
    assert chunks(Rule("factoring"), np.zeros(64), 4)[:4] == [8] * 4
    trapezoid = chunks(Rule("trapezoid"), np.ones(1000), 4)
    assert trapezoid[0] == 125 and sum(trapezoid) == 1000 and len(trapezoid) == pytest.approx(16, abs=1)
    assert (np.diff(np.diff(trapezoid[:-1])) >= -2).all() and (np.diff(trapezoid) <= 0).all()


@pytest.mark.parametrize("f", [2.0, 4.0])
def test_a_triangular_loop_is_factored_by_its_elements(f):
    """Equation 4: the columns of a factoring step have 1/f of the elements that are left."""
    size, workers = 7158, 4
    sizes = chunks(Rule("factoring", f=f), np.arange(size, 0, -1), workers)
    left = size
    for step in range(6):
        columns = 0.5 + left - sqrt((left**2 + left) * (1 - 1 / f) + 0.25)
        taken = sum(sizes[step * workers : (step + 1) * workers])
        assert taken == pytest.approx(columns, abs=workers)
        left -= taken


def simulate(rule, work, speeds):
    """(end of each worker, chunks): workers of constant speed, who ask again when they are done."""
    loop, ends, count = Loop(rule, np.asarray(work, float), len(speeds)), np.zeros(len(speeds)), 0
    idle = [(0.0, w, 0.0) for w in range(len(speeds))]
    while idle:
        now, w, took = heapq.heappop(idle)
        first, last = loop.next(w, took)
        ends[w] = now
        if first < last:
            took = float(loop.work[first:last].sum()) / speeds[w]
            heapq.heappush(idle, (now + took, w, took))
            count += 1
    return ends, count


@settings(max_examples=100)
@given(
    st.lists(st.floats(0.1, 1.0), min_size=1, max_size=6),
    st.floats(0.5, 20.0),
    st.sampled_from([2.0, 4.0]),
    st.sampled_from(["guided", "trapezoid", "factoring"]),
    st.booleans(),
)
@example([0.333984375, 0.33203125], 1.0, 2.0, "guided", True)  # the slower one knows its speed first
def test_delta_bounds_the_imbalance(speeds, delta, f, taking, triangular):
    work = np.arange(3000, 0, -1) / 1500 if triangular else np.ones(3000)
    ends, _ = simulate(Rule(taking, f, delta), work, speeds)
    ideal, longest_task = work.sum() / sum(speeds), work.max() / min(speeds)
    bound = delta + 2 * longest_task
    assert ends.max() - ends.min() <= bound
    assert ideal * (1 - 1e-9) <= ends.max() <= ideal + bound


@settings(max_examples=100)
@given(
    st.lists(st.floats(0.1, 1.0), min_size=1, max_size=6),
    st.floats(0.5, 20.0),
    st.sampled_from(["guided", "trapezoid", "factoring"]),
    st.integers(0, 1900),
)
def test_with_most_nobody_gets_all_that_is_hard(speeds, most, taking, first):
    """A tenth of the tasks, wherever they stand together, takes ten times as long, and nothing tells so."""
    actual = np.ones(2000)
    actual[first : first + 200] = 10.0
    loop, idle, chunks = Loop(Rule(taking, most=most), np.ones(2000), len(speeds)), [], []
    idle = [(0.0, w, 0.0) for w in range(len(speeds))]
    ends = np.zeros(len(speeds))
    while idle:
        now, w, took = heapq.heappop(idle)
        begin, last = loop.next(w, took)
        ends[w] = now
        if begin < last:
            took = float(actual[begin:last].sum()) / speeds[w]
            chunks.append((took, last - begin))
            heapq.heappush(idle, (now + took, w, took))
    assert all(took <= 10 * most * (1 + 1e-9) for took, size in chunks if size > 1)
    assert np.ptp(ends) <= max(10 * most, 10.0 / min(speeds)) * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.5, 5.0, 30.0])
def test_the_chunk_of_a_triangular_loop_solves_equation_3(delta):
    size, speed = 7158, 3000.0
    work = np.arange(size, 0, -1.0)
    loop = Loop(Rule("chunk", delta=delta), work, 4)
    first, last = loop.next(0, 0.0)
    assert last - first == 30
    first, last = loop.next(0, work[:30].sum() / speed)
    root = -0.5 + sqrt(0.25 + 2 * delta * speed)
    assert last - first == pytest.approx(root, abs=1)
    _, count = simulate(Rule("chunk", delta=delta), work, [speed] * 4)
    assert count == pytest.approx(size / root, rel=0.05, abs=5)


# Loops by the letter of Stathopoulos and Ynnerman


@pytest.mark.parametrize("f", [2.0, 4.0])
def test_literal_factoring_hands_out_equal_numbers_of_columns(f):
    """Equation 4 for the columns of a step, of which each of the next p that ask gets c/p."""
    size, workers = 7158, 4
    sizes = chunks(Rule("factoring", f=f, literal=True), np.arange(size, 0, -1), workers)
    left = size
    for step in range(8):
        columns = 0.5 + left - sqrt((left**2 + left) * (1 - 1 / f) + 0.25)
        taken = sizes[step * workers : (step + 1) * workers]
        assert len(set(taken)) == 1 and 0 <= workers * taken[0] - int(columns) < workers
        left -= sum(taken)
    assert sum(sizes) == size


@pytest.mark.parametrize("taking", ["chunk", "factoring"])
def test_nothing_is_decided_by_the_letter_before_all_speeds_are_known(taking):
    """Who asks before that gets one more chunk of 30, and nobody waits."""
    loop = Loop(Rule(taking, delta=5.0, literal=True), np.ones(3000), 3)
    assert [loop.next(w, 0.0) for w in range(3)] == [(0, 30), (30, 60), (60, 90)]
    assert (
        loop.next(0, 10.0) == (90, 120)
        and loop.next(1, 15.0) == (120, 150)
        and loop.next(0, 10.0) == (150, 180)
    )
    first, last = loop.next(2, 30.0)
    assert first == 180 and last - first != 30


def test_a_worker_that_never_asks_keeps_nobody_waiting():
    loop, taken = Loop(Rule("chunk", delta=5.0, literal=True), np.ones(300), 2), 0
    while (chunk := loop.next(0, 1.0))[0] < chunk[1]:
        taken += chunk[1] - chunk[0]
    assert taken == 300


def test_the_literal_chunk_is_decided_once_by_the_slowest_of_all():
    """Equation 3 with a speed of 1/s: neither faster workers nor later times change it."""
    loop = Loop(Rule("chunk", delta=40.0, literal=True), np.ones(3000), 2)
    loop.next(0, 0.0)
    loop.next(1, 0.0)
    loop.next(0, 3.0)
    for worker, seconds in ((1, 30.0), (0, 300.0), (1, 1.0), (0, 1.0)):
        first, last = loop.next(worker, seconds)
        assert last - first == 40


def test_our_chunk_goes_by_the_slowest_known_so_far():
    loop = Loop(Rule("chunk", delta=40.0), np.ones(3000), 2)
    loop.next(0, 0.0)
    loop.next(1, 0.0)
    first, last = loop.next(0, 15.0)
    assert last - first == 80  # the slower one is still busy with its probe
    first, last = loop.next(1, 30.0)
    assert last - first == 40


def test_a_step_of_literal_factoring_has_at_least_the_columns_of_equation_3():
    work, speed, delta = np.arange(3000, 0, -1.0), 1000.0, 20.0
    loop = Loop(Rule("factoring", delta=delta, literal=True), work, 4)
    probes = [loop.next(w, 0.0) for w in range(4)]
    given = [loop.next(w, work[slice(*probe)].sum() / speed) for w, probe in enumerate(probes)]
    while (chunk := loop.next(0, 1.0))[0] < chunk[1]:
        given.append(chunk)
    sizes = [
        last - first for first, last in given[3:-1]
    ]  # all speeds are known; the last one is what is left
    root = int(-0.5 + sqrt(0.25 + 2 * delta * speed))
    assert min(sizes) == sizes[-1] == ceil(root / 4)


def test_literal_factoring_says_that_delta_bounds_a_step():
    schedule = policy_named("factoring(delta=0.5, literal=true)")(ONE_LEVEL, COSTS, 4)
    assert "steps of 4 chunks with 0.5 s or more" in str(schedule)
    schedule = policy_named("chunk(size=0, delta=0.5, literal=true)")(ONE_LEVEL, COSTS, 4)
    assert "chunks of 0.5 s or more" in str(schedule)


# Texts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("lpt", "lpt"),
        (" factoring( f = 4 , delta=0.5 ) ", "factoring(delta=0.5, f=4.0)"),
        ("factoring(f=2, delta=0.5)", "factoring(delta=0.5)"),
        ("ie-nxtval()", "ie-nxtval"),
        ("buckets(size=2, steal=True)", "buckets(size=2, steal=True)"),
        ("factoring(literal=true, f=4)", "factoring(f=4.0, literal=True)"),
        ("chunk(size=0, delta=5, literal=yes)", "chunk(delta=5.0, size=0, literal=True)"),
    ],
)
def test_policies_have_a_text_form(text, shown):
    policy = policy_named(text)
    assert str(policy) == shown and policy_named(shown) == policy and policy_named(policy) is policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tss(g=2)", "policy tss has no parameter 'g'; it has delta=, probe=, taper=, most=, longest_first="),
        ("lpt(3)", "policy lpt has no parameter '3'; it has barriers="),
        ("factoring(f=two)", "policy factoring: f=two: a number is expected"),
        ("factoring(f=)", "policy factoring: f=: a number is expected"),
        (
            "chunk(literal=true)",
            "policy chunk(literal=True): literal decides the size itself: give size=0 and delta",
        ),
        ("factoring(f=1)", "policy factoring(f=1.0): f must be a number above 1"),
        ("factoring(f=2, f=3)", "policy factoring: f is given twice"),
        ("gss(most=-1)", "policy gss(most=-1.0): most is a number of seconds, or 0 for any time"),
        (
            "factoring(literal=true, most=1)",
            "policy factoring(most=1.0, literal=True): literal says what chunks are: give it alone",
        ),
        ("factoring(delta=-1)", "policy factoring(delta=-1.0): delta is a number of seconds, 0 or more"),
        ("tss(probe=0)", "policy tss(probe=0): probe must be a whole number from 1 up"),
        ("ie-nxtval(quantum=0)", "policy ie-nxtval(quantum=0): quantum must be a whole number from 1 up"),
        ("dataflow(alike=2)", "policy dataflow(alike=2.0): alike must be a part of the work, from 0 to 1"),
        (
            "dataflow(queues=two)",
            "policy dataflow(queues=two): queues must be one or node or worker",
        ),
        ("dataflow(placement=x)", "policy dataflow(placement=x): placement must be robin or lpt"),
        ("ie-nxtval(quantum=1.5)", "policy ie-nxtval: quantum=1.5: a whole number is expected"),
        ("chunk(size=0)", "policy chunk(size=0): give size=1 or more, or size=0 and delta in seconds"),
        ("buckets(steal=maybe)", "policy buckets: steal=maybe: true or false is expected"),
        ("buckets(size=-1)", "policy buckets(size=-1): size must be 0 or more, quantum 1 or more"),
        (
            "proportional(speeds=1:x)",
            "policy proportional(speeds=1:x): speeds must be positive numbers such as 2:1",
        ),
        (
            "hybrid(long=2)",
            "policy hybrid(long=2.0): long and gain are parts of a level's time, from 0 to 1",
        ),
        (
            "hybrid(gain=-1)",
            "policy hybrid(gain=-1.0): long and gain are parts of a level's time, from 0 to 1",
        ),
        (
            "hybrid(trust=nan)",
            "policy hybrid(trust=nan): trust is a part of the time of an operation, 0 or more",
        ),
        ("hybrid(lists=1)", "policy hybrid has no parameter 'lists'; it has long=, trust=, gain="),
        ("hypergraph(tolerance=2)", "policy hypergraph(tolerance=2.0): tolerance is a share between 0 and 1"),
        ("factoring(f=2", "unknown policy 'factoring(f=2'"),
        ("", "unknown policy ''"),
    ],
)
def test_wrong_texts_get_one_sentence(text, message):
    with pytest.raises(InputError) as caught:
        policy_named(text)
    assert str(caught.value).startswith(message)


def test_a_policy_of_ones_own_needs_a_name_of_its_own():
    class Lpt(LevelPolicy):
        name = "lpt"

        def phase(self, tasks, cost, team):
            return Phase()

    with pytest.raises(InputError, match="there is a policy lpt already"):
        register(Lpt())


# Hypergraphs


def test_without_mt_kahypar_lpt_is_used_with_a_warning(monkeypatch):
    monkeypatch.setattr("tilewise.schedule.hypergraph._partitioner", lambda: None)
    with pytest.warns(RuntimeWarning, match=r"pip install 'tilewise\[hypergraph\]'\); using lpt instead"):
        schedule = policies["hypergraph"](ONE_LEVEL, COSTS, 2)
    assert lists(schedule) == [[0, 3, 4, 7], [1, 2, 5, 6]]


@pytest.mark.parametrize("bad", [[0, 0, 2], [0, -1, 0], [0, 0], [0, 0, 0]])
def test_partitions_are_verified(bad):
    assert _is_even(np.array([0, 1, 0]), np.ones(3), 2, 0.5)
    assert not _is_even(np.array(bad), np.ones(3), 2, 0.5)
