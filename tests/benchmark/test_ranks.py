"""Mean ranks."""

import numpy as np
import pandas as pd

from gpae.benchmark.ranks import mean_ranks


def figures(metric: str, **means: float) -> pd.DataFrame:
    return pd.DataFrame({"dataset": "LCD", "method": list(means), "metric": metric, "mean": list(means.values())})


def test_ties_at_two_decimals_share_a_rank_and_a_method_without_answers_comes_last() -> None:
    ranks = mean_ranks(figures("L2", A=0.101, B=0.104, C=np.nan, D=0.3)).set_index("method")["rank"]
    assert ranks.to_dict() == {"A": 1.5, "B": 1.5, "D": 3.0, "C": 4.0}


def test_rounding_is_that_of_the_printed_number() -> None:
    """0.905 is a little more than that in binary, and is printed as 0.91."""
    ranks = mean_ranks(figures("L2", A=0.905, B=0.9051, C=0.91)).set_index("method")["rank"]
    assert ranks.to_dict() == {"A": 2.0, "B": 2.0, "C": 2.0}


def test_higher_is_better_for_validity() -> None:
    assert mean_ranks(figures("Validity", A=0.5, B=0.9)).method.tolist() == ["B", "A"]


def test_the_mean_is_over_metrics_and_data_sets_alike() -> None:
    lines = [
        figures("L2", A=1.0, B=2.0),
        figures("IM1", A=1.0, B=2.0),
        figures("L2", A=2.0, B=1.0).assign(dataset="GMC"),
    ]
    ranks = mean_ranks(pd.concat(lines)).set_index("method")
    assert (ranks["rank"]["A"], ranks["rank"]["B"], ranks["cells"]["A"]) == (4 / 3, 5 / 3, 3)
