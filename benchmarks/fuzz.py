"""Tries tilewise with random inputs for as long as it is told: no traceback, no hang, no changed energy.

python benchmarks/fuzz.py [--cases 1000] [--seconds 600] [--seed 1] [--first 500] [--jobs 2] [--only KIND]
python benchmarks/fuzz.py --replay SEED:NUMBER

Ends with exit code 1 if something was found. docs/fuzzing.md says what is tried and what must hold.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # forks are made: no threads before that
    os.environ[pool] = "1"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, help="stop after so many; 1000 unless --seconds is given")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument(
        "--seed", type=int, default=None, help="of the random numbers; by default another one each time"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first case, to go on with")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time, each in processes of its own")
    parser.add_argument("--only", metavar="KIND", help="cases of one kind alone; list shows all kinds")
    parser.add_argument("--replay", metavar="SEED:NUMBER", help="one case again")
    parser.add_argument(
        "--hang", type=float, default=60.0, help="seconds after which a case is taken to hang"
    )
    parser.add_argument("--world", metavar="FOLDER", help="files that all cases start from, made before")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-cache-") as cache:
        os.environ["TILEWISE_CACHE_DIR"] = cache  # what the user has tuned stays as it is
        return campaign(args, parser)


def campaign(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from fuzzing import Campaign, World, kinds

    if args.only == "list":
        print(
            "\n".join(f"{name:32} {kind.make.__doc__ or ''}".strip() for name, kind in sorted(kinds.items()))
        )
        return 0
    if args.only is not None and args.only not in kinds:
        parser.error(f"--only {args.only}: valid are {', '.join(sorted(kinds))}")
    if args.first < 0:
        parser.error(f"--first {args.first}: cases have numbers from 0 on")
    if args.jobs < 1:
        parser.error(f"--jobs {args.jobs}: at least one case at a time")
    world = World(Path(args.world)) if args.world else None
    if world is not None and not world.is_prepared:
        parser.error(f"--world {args.world}: there are no files of World.prepare")
    if args.replay:
        seed, _, number = args.replay.partition(":")
        return 1 if Campaign(int(seed), hangs=args.hang, world=world).replay(int(number)).findings else 0
    seed = random.randrange(10**6) if args.seed is None else args.seed
    cases = 1000 if args.cases is None and args.seconds is None else args.cases
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    say = partial(print, flush=True)
    chosen = Campaign(seed, args.only, args.hang, say, args.jobs, args.first, world)
    summary = chosen.run(cases, args.seconds)
    spent = time.monotonic() - began
    print(summary.table())
    print(f"{summary.cases} cases in {spent:.0f} s, {summary.cases / spent:.1f} per second, seed {seed}")
    for (kind, signature), count in summary.repeated.most_common():
        print(f"{count:6} x {kind}: {signature}; --replay {summary.findings[kind, signature].name}")
    print(f"{len(summary.findings)} findings")
    return 1 if summary.findings else 0


if __name__ == "__main__":
    sys.exit(main())
