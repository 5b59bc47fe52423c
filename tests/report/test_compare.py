"""Tables beside the paper's, and the ranks."""

import numpy as np
import pandas as pd
import pytest

from gpae.report.compare import agreement, beside_the_paper, paper_ranks, paper_tables, summarised


@pytest.mark.parametrize(("table", "rank"), [("counterfactual", 3.04), ("counterfactual_masked", 2.29)])
def test_the_rule_gives_the_papers_own_mean_ranks(table: str, rank: float) -> None:
    printed = paper_tables()
    ranks = paper_ranks(printed[printed.table == table])
    assert ranks.method[0] == "GPAE"
    assert ranks["rank"][0] == pytest.approx(rank, abs=0.005)


def records(values: dict[tuple[str, int], float], metric: str = "L2", masked: bool = False) -> pd.DataFrame:
    lines = [("LCD", method, masked, seed, metric, value, 10, 1.0) for (method, seed), value in values.items()]
    return pd.DataFrame(lines, columns=["dataset", "method", "masked", "seed", "metric", "value", "n_rows", "seconds"])


def test_means_and_deviations_are_over_the_seeds_and_the_suffix_chooses_the_common_rows() -> None:
    plain = records({("GPAE", 0): 1.0, ("GPAE", 1): 3.0})
    common = records({("GPAE", 0): 7.0, ("GPAE", 1): 7.0}, metric="L2Common")
    both = pd.concat([plain, common])
    ours = summarised(both, "counterfactual").iloc[0]
    assert (ours["mean"], ours["std"], ours["seeds"]) == (2.0, pytest.approx(np.sqrt(2.0)), 2)
    assert summarised(both, "counterfactual", "Common")["mean"].tolist() == [7.0]


def test_only_the_papers_methods_compete() -> None:
    figures = summarised(
        records({("GPAE", 0): 0.3, ("LogReg", 0): 0.4, ("LogReg (one step)", 0): 0.1}), "counterfactual"
    )
    assert paper_ranks(figures).method.tolist() == ["GPAE", "LogReg"]


def test_cells_are_counted_as_within_better_or_worse() -> None:
    printed = paper_tables().query("table == 'counterfactual' and dataset == 'LCD' and metric == 'L2'")
    steps = {"GPAE": 0.0, "SAE": 3.0, "CLUE": -3.0, "FACE": 1.9}
    values = {}
    for method, n in steps.items():
        one = printed[printed.method == method].iloc[0]
        values[(method, 0)] = one["mean"] + n * one["std"]
    counts = agreement(summarised(records(values), "counterfactual"), "counterfactual")
    assert counts.loc["L2"].to_dict() == {"within": 2, "better": 1, "worse": 1}


def test_worse_means_more_than_two_of_the_papers_deviations_in_the_bad_direction() -> None:
    printed = paper_tables().query("table == 'counterfactual' and dataset == 'LCD' and method == 'GPAE'")
    paper = printed.set_index("metric")
    for metric, sign in (("L2", 1), ("Validity", -1)):
        for steps, worse in ((1.9, False), (2.1, True), (-2.1, False)):
            value = paper["mean"][metric] + sign * steps * paper["std"][metric]
            ours = summarised(records({("GPAE", 0): value}, metric=metric), "counterfactual")
            assert bool(beside_the_paper(ours, "counterfactual").worse[0]) is worse


def test_two_deviations_exactly_are_within_whatever_the_last_bit_says() -> None:
    """1.00 - 0.98 is more than 2 x 0.01 in floating point."""
    printed = paper_tables().query("metric == 'Validity' and mean == 0.98 and std == 0.01").iloc[0]
    masked = printed["table"] == "counterfactual_masked"
    ours = records({(printed["method"], 0): 1.0}, metric="Validity", masked=masked).assign(dataset=printed["dataset"])
    counts = agreement(summarised(ours, printed["table"]), printed["table"])
    assert counts.loc["Validity"].to_dict() == {"within": 1, "better": 0, "worse": 0}
