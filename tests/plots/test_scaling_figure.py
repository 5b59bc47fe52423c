import pandas as pd

from gpae.plots.scaling import scaling_figure
from gpae.plots.style import to_png


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = pd.DataFrame(
        {"dataset": name, "rows": n, "seconds": n / 5000, "peak_mib": 900.0, "exponent": 1.0}
        for name in ("adult", "fico")
        for n in (100, 1000, 10_000)
    )
    sizes = pd.DataFrame(
        {"dataset": "adult", "varied": varied, "size": size, "us_per_row": 10.0 * size, "exponent": 1.0}
        for varied in ("S", "d", "D", "k")
        for size in (1, 2, 4)
    )
    return rows, sizes


def test_a_panel_for_time_for_memory_and_for_each_size() -> None:
    figure = scaling_figure(*tables())
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len(shown) == 6
    time, memory = shown[:2]
    assert [line.get_xdata().tolist() for line in time.lines] == [[100, 1000, 10_000]] * 2
    assert time.get_yscale() == "log"
    assert memory.get_ylim()[0] == 0
    assert "exponent 1.00" in time.get_legend().get_texts()[0].get_text()
    assert to_png(figure).startswith(b"\x89PNG")


def test_a_size_that_was_not_varied_has_no_panel() -> None:
    rows, sizes = tables()
    figure = scaling_figure(rows, sizes[sizes["varied"].isin(["S", "k"])])
    assert len([axes for axes in figure.axes if axes.get_visible()]) == 4


def test_sizes_too_near_each_other_share_a_label() -> None:
    rows, sizes = tables()
    sizes = sizes[sizes["varied"] == "D"].assign(size=[24, 26, 35])
    columns = scaling_figure(rows, sizes).axes[2]
    assert columns.get_xticks().tolist() == [24, 35]
