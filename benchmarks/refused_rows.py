"""What the metrics say of changing nothing: Diversity and Instability of the refused test rows themselves.

``python benchmarks/refused_rows.py results/paper/shared``; classifiers that are not in that folder are fitted again.
"""

import sys
from pathlib import Path

import numpy as np

from gpae.benchmark.workbench import Workbench
from gpae.numerics.distances import mean_distance_to_others, nearest_other

SEEDS = 2
ROWS = 1000


def main(shared: Path) -> None:
    print("dataset  seed  diversity  instability")
    for name in ("adult", "fico", "gmc", "law", "lcd"):
        for seed in range(SEEDS):
            rows = Workbench(name, seed, ROWS, shared).refused
            _, apart = nearest_other(rows, np.ones(len(rows), dtype=np.int64))
            diversity, instability = mean_distance_to_others(rows).mean() / 2, (apart / (1 + apart)).mean()
            print(f"{name:7}  {seed:4}  {diversity:9.3f}  {instability:11.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
