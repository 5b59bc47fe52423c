"""Soak the constraints, and write down what was found.

``python -m benchmarks.soak -o results/soak --plans 200000``, from the root of the repository, draws tables (the
five data sets and synthetic ones), schemas, models, constraints and questions until so many plans are written, and
judges each. ``constraints.csv`` counts by table and kind; what is wrong goes to ``violations.jsonl`` with the whole
case, which ``--replay violations.jsonl`` asks again, and the exit code is 1.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

from benchmarks.soak.tally import Tally, ask, soak
from gpae.benchmark.record import describe_run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder for constraints.csv and run.json")
    parser.add_argument("--plans", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=Path, help="a violations.jsonl to ask again instead of drawing")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    tally, start = Tally(), time.monotonic()
    if options.replay:
        for line in options.replay.read_text(encoding="utf-8").splitlines():
            ask(json.loads(line)["case"], tally)
    else:
        soak(options.plans, options.seed, tally)
    seconds = time.monotonic() - start
    tally.frame().to_csv(options.out / "constraints.csv", index=False)
    wrong = options.out / "violations.jsonl"
    wrong.unlink(missing_ok=True)
    if tally.violations:
        wrong.write_text("".join(json.dumps(one) + "\n" for one in tally.violations), encoding="utf-8")
    describe_run(
        options.out,
        ["python", "-m", "benchmarks.soak", *(sys.argv[1:] if argv is None else argv)],
        plans=tally.plans, cases=tally.cases, refused=tally.refused, violations=len(tally.violations),
        seconds=round(seconds, 1), plans_per_second=round(tally.plans / max(seconds, 1e-9), 1),
    )  # fmt: skip
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
