"""Python loops with uneven items: tilewise.parallel_for beside joblib, Pool.map and concurrent.futures.

python benchmarks/loop.py                                   # all shapes, both loads, on two processes
python benchmarks/loop.py --shapes rising,last --loads 2-1 --repeat 9 --programs ours,pool,joblib,joblib-cold
python benchmarks/loop.py --loads 2-1 --free                # workers are not bound to processors
python benchmarks/loop.py --overhead                        # microseconds per chunk on processes

Every program has two processes, its default way of cutting the loop, and the same items, whose costs nobody
knows beforehand; "costs known" is `parallel_for` with them, as given, learnt by name or taken from an
earlier call. Under load "2-1" a process of the benchmark's own computes on the first processor all the
time. Each worker of every program is bound to a processor, as in balance.py: one of them has speed 1/2, as
on a machine that somebody else uses too. With --free the system may move workers, which does a part of the
sharing for those who do not: two processes have one and a half processors while both of them work, and one of
them alone has a whole one, so that whoever shares perfectly is at most 1.5 times as fast as one who does
not share at all.

`parallel_for`, Pool and concurrent.futures start their processes within the time. joblib keeps its own from
one call to the next: "joblib" finds them there, "joblib, first call" starts them, as in a script with one
loop. One repeat runs all programs in turn, begins with another one than the last, and draws other random
items. Printed, as medians over the repeats: seconds, and their ratios in the same repeat to those of
`parallel_for`, and to those of it with known costs. joblib is raced if it is there.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import Pool

import numpy as np
from spinning import Bound, spin

from tilewise import parallel_for
from tilewise.config import processors
from tilewise.hardware.competitors import competing

SHAPES = ("equal", "rising", "random", "few", "last", "middle", "screened")
OURS, COSTS = "ours", "costs"
PROGRAMS = {
    OURS: "parallel_for",
    "delta": "  factoring(f=2, delta=0.5)",
    COSTS: "  costs known",
    "pool": "multiprocessing Pool.map",
    "futures": "concurrent.futures map",
    "joblib": "joblib",
    "joblib-cold": "joblib, first call",
}


def rounds_of(shape: str, count: int, seconds: float, rate: float, seed: int) -> list[int]:
    """Rounds of each item; `seconds` in all on a free core that makes `rate` rounds in one."""
    rng = np.random.default_rng(seed)
    place = np.arange(count) / count
    passing = rng.uniform(0.0, 0.97)
    cost = {
        "equal": np.ones(count),
        "rising": np.arange(1.0, count + 1) ** 2,  # a scan whose parameter makes each point harder
        "random": rng.lognormal(0.0, 1.5, count),
        "few": np.where(rng.permutation(count) < 0.01 * count, 400.0, 1.0),  # one in a hundred, anywhere
        "last": np.where(place < 0.97, 1.0, 75.0),  # the hard ones come at the end
        "middle": np.where(abs(place - 0.5) < 0.015, 75.0, 1.0),  # a region that is hard
        # What passes a screening is computed, and neighbours pass together; the others are through at once.
        "screened": np.where(abs(place - passing - 0.015) < 0.015, 500.0, 1.0),
    }[shape]
    return (cost * (seconds * rate / cost.sum())).astype(np.int64).tolist()


def measured_rate() -> float:
    began = time.perf_counter()
    spin(400_000)
    return 400_000 / (time.perf_counter() - began)


def with_pool(work: Bound, items: list[int]) -> list[bytes]:
    with Pool(2) as pool:
        return pool.map(work, items)


def with_futures(work: Bound, items: list[int]) -> list[bytes]:
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(work, items))


def with_joblib(work: Bound, items: list[int]) -> list[bytes]:
    from joblib import Parallel, delayed

    return Parallel(n_jobs=2)(delayed(work)(item) for item in items)


def ours(work: Bound, items: list[int], **settings: object) -> list[bytes]:
    return list(parallel_for(work, items, workers=2, executor="processes", **settings))


def programs() -> dict[str, Callable[[Bound, list[int]], list[bytes]]]:
    found: dict[str, Callable[[Bound, list[int]], list[bytes]]] = {
        OURS: ours,
        "delta": lambda work, items: ours(work, items, policy="factoring(f=2, delta=0.5)"),
        COSTS: lambda work, items: ours(work, items, costs=items),
        "pool": with_pool,
        "futures": with_futures,
    }
    if find_spec("joblib"):
        found |= {"joblib": with_joblib, "joblib-cold": with_joblib}
    return found


def prepare(name: str) -> None:
    """What does not count: the processes that joblib keeps are started, or ended."""
    if name == "joblib":
        with_joblib(Bound(""), [1, 1])
    if name == "joblib-cold":
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)


def in_turn(names: list[str], loops: list[list[int]], bound: bool) -> dict[str, list[float]]:
    """Seconds of each program with each list of items."""
    times: dict[str, list[float]] = {name: [] for name in names}
    for number, items in enumerate(loops):
        expected = [spin(item) for item in items[:3]]
        first = number % len(names)
        for name in names[first:] + names[:first]:
            prepare(name)
            with tempfile.TemporaryDirectory() as folder:
                work = Bound(folder if bound else "")
                began = time.perf_counter()
                assert programs()[name](work, items)[:3] == expected
                times[name].append(time.perf_counter() - began)
    return times


def race(shape: str, load: str, names: list[str], args: argparse.Namespace) -> None:
    count, seconds, repeat, bound = args.items, args.seconds, args.repeat, not args.free
    rate = max(measured_rate() for _ in range(5))
    loops = [rounds_of(shape, count, seconds, rate, seed) for seed in range(1, repeat + 1)]
    with competing(load, processors()[:2]) as speeds:
        times = in_turn([name for name in names if name in programs()], loops, bound)
    where = "bound" if bound else "free"
    print(
        f"\n{shape} items, load {load}, workers {where}: {count} items, {seconds:g} s of work, "
        f"{seconds / sum(speeds):.2f} s if shared perfectly"
    )
    for name, took in times.items():
        ratios = [_ratio(took, times[ours]) for ours in (OURS, COSTS) if ours in times]
        spread = f"(from {min(took):.2f} to {max(took):.2f})"
        shown = "".join(f"{ratio:7.2f}x" for ratio in ratios)
        print(f"  {PROGRAMS[name]:26} {statistics.median(took):7.2f} s {shown}   {spread}", flush=True)


def _ratio(times: list[float], others: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(times, others, strict=True))


def overhead(chunks: int = 2000, repeat: int = 7) -> None:
    """What a chunk of one empty item costs on processes, beyond the first: the median of a few loops."""
    for workers in (1, 2):
        each = []
        for _ in range(repeat):
            times = []
            for count in (workers, chunks):
                began = time.perf_counter()
                parallel_for(abs, range(count), policy="ie-nxtval", workers=workers, executor="processes")
                times.append(time.perf_counter() - began)
            each.append(1e6 * (times[1] - times[0]) / (chunks - workers))
        print(
            f"{chunks} chunks of one empty item on {workers} processes: "
            f"{statistics.median(each):.0f} us each ({min(each):.0f} to {max(each):.0f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--loads", default="1-1,2-1")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="of " + ", ".join(PROGRAMS))
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of work in one loop")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--free", action="store_true", help="workers are not bound to processors")
    parser.add_argument("--overhead", action="store_true", help="microseconds per chunk instead of a race")
    args = parser.parse_args()
    if args.overhead:
        overhead()
        return
    peers = [name for name in args.programs.split(",") if name != OURS]
    for shape in args.shapes.split(","):
        for load in args.loads.split(","):
            race(shape, load, [OURS, *peers], args)


if __name__ == "__main__":
    main()
