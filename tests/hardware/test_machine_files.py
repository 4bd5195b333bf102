"""Machine files: those that are shipped, and what is said about wrong ones."""

import math

import pytest

from tilewise.errors import InputError
from tilewise.hardware.machines import Load, MachineModel, Rates, find_machine, read_machine, shipped_machines
from tilewise.hardware.model import STANDARD

GOOD = """# a machine
nodes = 2
cores = 2
speed = [1.0, 1, 0.5, 2.0]
noise = 0.1
barrier = 1e-5
prefetch = 1

[network]
latency = 2e-6
bandwidth = 4e9

[counter]
service = 1e-6
latency = 3e-6
shared = 1e-7

[[load]]
core = 0
from = 1.0
to = 2
jobs = 2

[[load]]  # without end
core = 0
from = 2
jobs = 3
"""


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "made.toml"
        path.write_text(text)
        return path

    return write


def test_a_file_is_read_as_it_is_written(file):
    model = read_machine(file(GOOD))
    assert (model.name, model.nodes, model.cores, model.size) == ("made", 2, 2, 4)
    assert model.speed == (1.0, 1.0, 0.5, 2.0) and model.speeds(3).tolist() == [1.0, 1.0, 0.5]
    assert (model.noise, model.barrier, model.prefetch) == (0.1, 1e-5, 1)
    assert (model.latency, model.bandwidth) == (2e-6, 4e9)
    assert (model.counter_service, model.counter_latency, model.counter_shared) == (1e-6, 3e-6, 1e-7)
    assert model.loads == (Load(0, 2, 1.0, 2.0), Load(0, 3, 2.0, math.inf))
    assert model.node_of(4).tolist() == [0, 0, 1, 1]


RATES = "[rates]\ngemm = 9e9\nsort = 1e8"
MORE = (
    GOOD.replace("prefetch = 1", "prefetch = 1\nreserved = 1\noverlap = true")
    .replace("[1.0, 1, 0.5, 2.0]", "[1.0, 2.0]")
    .replace("bandwidth = 4e9", "bandwidth = 4e9\nshared = true\nin_flight = 3")
    .replace("shared = 1e-7", f"shared = 1e-7\nbuffers = 150\nresend = 2e-6\n\n{RATES}\nstream = 5e9")
    + "\n[ready]\nservice = 2e-7\nlatency = 4e-6\nactivation = 0\n"
)


CORES = GOOD.replace("prefetch = 1", "prefetch = 1\ncrowding = 1.2\ndrift = 0.1\nstretch = 0.5")


def test_crowded_and_drifting_cores_are_read_too(file):
    model, plain = read_machine(file(CORES)), read_machine(file(GOOD))
    assert (model.crowding, model.drift, model.stretch) == (1.2, 0.1, 0.5)
    assert (plain.crowding, plain.drift) == (1.0, 0.0)
    # Two cores in each node: a third worker is alone in its own.
    assert model.speeds(3).tolist() == pytest.approx([1 / 1.2, 1 / 1.2, 0.5])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "crowding = 1.2",
            "crowding = 0.9",
            "crowding = 0.9: a core takes longer beside others, so 1 or more",
        ),
        ("drift = 0.1", "drift = -1", "drift = -1: a number from 0 up is expected"),
        ("stretch = 0.5", "stretch = 0", "stretch = 0: a number above 0 is expected"),
    ],
)
def test_crowded_and_drifting_cores_are_checked_too(file, old, new, message):
    with pytest.raises(InputError) as error:
        read_machine(file(CORES.replace(old, new)))
    assert message in str(error.value) and "line " in str(error.value)


def test_what_is_optional_is_read_too(file):
    model = read_machine(file(MORE))
    assert (model.reserved, model.working, model.size, model.overlap) == (1, 1, 2, True)
    assert model.links and model.in_flight == 3 and model.rates == Rates(9e9, 1e8, 5e9)
    assert (model.counter_buffers, model.counter_resend) == (150, 2e-6)
    assert (model.ready_service, model.ready_latency, model.ready_activation) == (2e-7, 4e-6, 0.0)
    plain = read_machine(file(GOOD))
    assert (plain.reserved, plain.overlap, plain.links, plain.rates) == (0, False, False, STANDARD)
    assert (plain.counter_buffers, plain.counter_resend) == (0, 0.0)
    assert plain.ready_service == plain.ready_latency == plain.ready_activation == 0.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("reserved = 1", "reserved = 2", "line 8: 2 of 2 cores are reserved, so that none works"),
        ("overlap = true", "overlap = 1", "line 9: overlap = 1: true or false is expected"),
        ("shared = true", 'shared = "yes"', "line 14: network.shared = 'yes': true or false is expected"),
        ("resend = 2e-6\n", "", "line 21: counter.buffers and counter.resend come together"),
        (
            "buffers = 150",
            "buffers = 0",
            "line 21: counter.buffers = 0: a whole number from 1 up is expected",
        ),
        ("in_flight = 3", "resend = 1", "line 15: network.buffers and network.resend come together"),
        ("shared = true", "shared = false", "line 15: network.in_flight has a meaning with network.shared"),
        ("sort = 1e8", "", "line 24: table rates lacks the value 'sort'"),
        ("gemm = 9e9", "gemm = 0", "line 25: rates.gemm = 0: a number above 0 is expected"),
        ("activation = 0\n", "", "line 40: table ready lacks the value 'activation'"),
        ("service = 2e-7", "service = -1", "line 41: ready.service = -1: a number from 0 up is expected"),
        ("latency = 4e-6", "latency = inf", "line 42: ready.latency = inf: a number from 0 up is expected"),
        ("activation = 0", "activations = 0", "line 43: unknown value 'activations'; table ready has "),
    ],
)
def test_what_is_optional_is_checked_too(file, old, new, message):
    assert MORE.count(old) == 1
    with pytest.raises(InputError) as error:
        read_machine(file(MORE.replace(old, new)))
    assert message in str(error.value)


def test_loads_may_be_a_list_of_inline_tables(file):
    text = "load = [\n  {core = 3, jobs = 2},\n  {core = 1, from = 5, to = 6, jobs = 4},\n]\n"
    head = GOOD[: GOOD.index("[[load]]")].replace("prefetch = 1\n", "prefetch = 1\n" + text)
    assert read_machine(file(head)).loads == (Load(3, 2), Load(1, 4, 5.0, 6.0))
    with pytest.raises(InputError, match=r"made\.toml, line 10: load\[1\]\.jobs = -4: "):
        read_machine(file(head.replace("jobs = 4", "jobs = -4")))


MISTAKES = {
    "a missing value": ("noise = 0.1\n", "", 1, "the file lacks the value 'noise'"),
    "a missing value of a table": ("latency = 2e-6\n", "", 9, "table network lacks the value 'latency'"),
    "a missing table": ("[network]", "[network.more]", 9, "unknown value 'more'; table network has latency"),
    "a value in the wrong table": ("[counter]", "counters = 3\n[counter]", 13, "unknown value 'counters'"),
    "an unknown value": ("cores = 2", "cores = 2\ncoers = 4", 4, "unknown value 'coers'; the file has nodes"),
    "an unknown value of a load": (
        "jobs = 3",
        "jobs = 3\nuntil = 4",
        28,
        "unknown value 'until'; table load[1]",
    ),
    "a load without a core": ("core = 0\nfrom = 2", "from = 2", 24, "table load[1] lacks the value 'core'"),
    "a negative latency": ("2e-6", "-2e-6", 10, "network.latency = -2e-06: a number from 0 up is expected"),
    "a negative service": ("1e-6", "-1e-6", 14, "counter.service = -1e-06: a number from 0 up"),
    "no bandwidth": ("4e9", "0", 11, "network.bandwidth = 0: a number above 0 is expected"),
    "a negative speed": ("0.5,", "-0.5,", 4, "speed[2] = -0.5: a number above 0 is expected"),
    "infinite noise": ("0.1", "inf", 5, "noise = inf: a number from 0 up is expected"),
    "more noise than can be": ("0.1", "1e300", 5, "noise = 1e+300: numbers go from 1e-30 to 1e+30"),
    "a time that is no number": ("1e-5", "nan", 6, "barrier = nan: a number from 0 up"),
    "a word": ("1e-5", "'short'", 6, "barrier = 'short': a number from 0 up is expected"),
    "a truth": ("1e-5", "true", 6, "barrier = True: a number from 0 up is expected"),
    "half a node": ("nodes = 2", "nodes = 0.5", 2, "nodes = 0.5: a whole number from 1 up is expected"),
    "more nodes than can be counted": ("nodes = 2", f"nodes = {2**63}", 2, "there are 1000000000 at most"),
    "no cores": ("cores = 2", "cores = 0", 3, "cores = 0: a whole number from 1 up is expected"),
    "half a task ahead": ("prefetch = 1", "prefetch = 0.5", 7, "prefetch = 0.5: a whole number from 0 up"),
    "too few speeds": ("[1.0, 1, ", "[", 4, "2 speeds for 4 cores: give one for each, or one number"),
    "a core that is not there": (
        "core = 0\nfrom = 2",
        "core = 4\nfrom = 2",
        25,
        "no core 4: the last one is 3",
    ),
    "a load that ends before it begins": ("to = 2", "to = 0.5", 21, "ends at 0.5 s, before it begins at 1 s"),
    "two loads at a time": ("from = 2", "from = 1.5", 24, "core 0 has two loads at the same time"),
    "no jobs": ("jobs = 3", "jobs = 0", 27, "load[1].jobs = 0: a whole number from 1 up is expected"),
    "a value twice": ("cores = 2", "cores = 2\ncores = 3", 4, "it is not TOML"),
    "no TOML at all": ("cores = 2", "cores: 2", 3, "it is not TOML"),
}


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_get_one_sentence_with_their_line(file, old, new, line, message):
    assert old in GOOD
    path = file(GOOD.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        read_machine(path)
    text = str(caught.value)
    assert text.startswith(f"{path}, line {line}: ") and message in text and "\n" not in text


@pytest.mark.parametrize("nodes", ["9" * 5000, "[" * 5000])
def test_numbers_and_lists_beyond_what_toml_reads_are_refused(file, nodes):
    with pytest.raises(InputError, match="numbers are too long, or lists too deep"):
        read_machine(file(GOOD.replace("nodes = 2", f"nodes = {nodes}")))


def test_a_load_that_is_no_table_and_a_network_that_is_a_number_are_refused(file):
    for old, new in (("[[load]]", "[load]"), ("[network]\nlatency = 2e-6\nbandwidth = 4e9", "")):
        text = GOOD.replace(old, new, 1)
        text = text[: text.rindex("[[load]]")] if new else text.replace("nodes = 2", "nodes = 2\nnetwork = 7")
        with pytest.raises(InputError, match=r"made\.toml, line \d+: .* must be a "):
            read_machine(file(text))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "picture.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it is not a text file"):
        read_machine(path)


@pytest.mark.parametrize("name", shipped_machines())
def test_shipped_machines_are_whole(name):
    model = find_machine(name)
    assert model == find_machine(f"{name}.toml")
    assert model.size >= 2 and model.team(2).size == 2


def test_the_papers_machines_are_those_of_the_papers():
    shapes = {name: (m.nodes, m.cores) for name in shipped_machines() for m in [find_machine(name)]}
    assert shapes["tukey"] == (96, 16) and shapes["pvm"] == (4, 1)
    assert shapes["server"] == (1, 64)
    assert shapes["fusion"][1] == 8 and shapes["cascade"][1] == 16
    assert find_machine("million").size == 10**6
    assert (find_machine("fusion").latency, find_machine("fusion").bandwidth) == (2e-6, 4e9)


def test_an_unknown_machine_lists_those_that_are_shipped():
    for given in ("fusoin", "fusoin.toml"):
        with pytest.raises(InputError) as caught:
            find_machine(given)
        message = str(caught.value)
        assert message.startswith("unknown machine 'fusoin': did you mean fusion") and ".toml" not in message
        assert all(name in message for name in shipped_machines())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nodes": 0}, "nodes=0: nodes must be a whole number from 1 "),
        ({"cores": "two"}, "cores='two': cores must be a whole number from 1 "),
        ({"reserved": 2}, "reserved=2: reserved must be a whole number from 0 to 1"),
        ({"speed": (1.0, 2.0)}, "2 speeds for 4 cores"),
        ({"speed": -1}, "speed=-1: speed must be a positive number"),
        ({"noise": float("nan")}, "noise=nan: noise must be a number from 0 up"),
        ({"latency": 1e300}, "latency=1e\\+300: numbers of a machine go from 1e-30 to 1e\\+30"),
        ({"bandwidth": 0}, "bandwidth=0: bandwidth must be a positive number"),
        ({"prefetch": 10**25}, "prefetch=10+: prefetch must be a whole number from 0 to 1000000000"),
        ({"links": 1}, "links=1: links must be True or False"),
        ({"loads": [3]}, r"loads=\[3\]: loads must be a tuple of Load objects"),
        ({"rates": 3}, "rates=3: rates must be a Rates object or None"),
    ],
)
def test_a_model_made_of_wrong_values_is_refused(values, message):
    with pytest.raises(InputError, match=f"^{message}"):
        MachineModel(**{"name": "mine", "nodes": 2, "cores": 2} | values)


def test_speeds_may_be_given_as_a_list():
    assert MachineModel("mine", 1, 2, speed=[1, 2]) == MachineModel("mine", 1, 2, speed=(1.0, 2.0))
