"""The figures of the core: classification, answers, solvers, density and beta, for five data sets and several seeds.

    python benchmarks/core.py -o results/core [--datasets lcd gmc] [--seeds 5] [--solver-rows 500]

Every (data set, seed) is a cell; finished cells are kept in ``<output>/cells`` and not run again. The tables next to
them (one CSV a question) are made from the cells, and ``run.json`` says with which command, versions and machine.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from gpae import GPAEClassifier, TabularExplainer, __version__, datasets
from gpae.explainer import Query
from gpae.numerics.density import log_density, log_envelope
from gpae.search import newton, reference

NAMES = ("lcd", "gmc", "fico", "adult", "law")


def main() -> None:
    arguments = parse()
    cells = arguments.output / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.seeds):
        for name in arguments.datasets:
            path = cells / f"{name}-{seed}.json"
            if not path.exists():
                started = time.perf_counter()
                record = cell(name, seed, arguments.solver_rows, arguments.reference_iterations)
                path.write_text(json.dumps(record, indent=1))
                print(f"{name} seed {seed}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
            write_tables(arguments.output, cells)
    draw_divergence(arguments.output)
    write_run(arguments.output)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("results/core"))
    parser.add_argument("--datasets", nargs="+", default=list(NAMES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--solver-rows", type=int, default=500)
    parser.add_argument("--reference-iterations", type=int, default=5000)
    return parser.parse_args()


def cell(name: str, seed: int, solver_rows: int, reference_iterations: int) -> dict[str, list[dict[str, object]]]:
    data = datasets.load(name)
    train, valid, test = data.split(seed=seed)
    weight = "balanced" if name == "adult" else None
    started = time.perf_counter()
    explainer = TabularExplainer(label=data.label, favourable=data.favourable, seed=seed, class_weight=weight)
    explainer.fit(train, valid)
    fit_seconds = time.perf_counter() - started
    where = {"dataset": data.paper_name, "seed": seed}
    classification = [classify(explainer, test, "GPAE", fit_seconds), boost(explainer, train, test)]
    if weight:
        plain = TabularExplainer(label=data.label, favourable=data.favourable, seed=seed, beta=0.1).fit(train, valid)
        classification.append(classify(plain, test, "GPAE, unweighted", float("nan")))
    answers = [answer(explainer, data, train, test, masked) for masked in ({(), data.masked} if data.masked else {()})]
    record = {
        "classification": classification,
        "answers": answers,
        "solvers": [solvers(explainer, pd.concat([test, valid]), solver_rows, reference_iterations)],
        "density": [density(explainer, train, test)],
        "beta": betas(explainer),
    }
    return {table: [where | row for row in rows] for table, rows in record.items()}


def classify(explainer: TabularExplainer, test: pd.DataFrame, model: str, seconds: float) -> dict[str, object]:
    y, p = explainer.codec_.labels(test), explainer.predict_proba(test)[:, 1]
    inner = explainer.method_.classifier_
    return {
        "model": model,
        "accuracy": accuracy_score(y, p > 0.5),
        "auc": roc_auc_score(y, p),
        "length_scale": inner.length_scale_,
        "classification_weight": inner.classification_weight_,
        "epochs": inner.trace_.best,
        "fit_seconds": round(seconds, 1),
    }


def boost(explainer: TabularExplainer, train: pd.DataFrame, test: pd.DataFrame) -> dict[str, object]:
    codec = explainer.codec_
    model = HistGradientBoostingClassifier(random_state=0, class_weight="balanced")
    model.fit(codec.encode(train).rows, codec.labels(train))
    p, y = model.predict_proba(codec.encode(test).rows)[:, 1], codec.labels(test)
    return {"model": "gradient boosting", "accuracy": accuracy_score(y, p > 0.5), "auc": roc_auc_score(y, p)}


def answer(
    explainer: TabularExplainer,
    data: datasets.Dataset,
    train: pd.DataFrame,
    test: pd.DataFrame,
    masked: tuple[str, ...],
) -> dict[str, object]:
    """Answer every refused test row, then judge the table with a model loaded afresh from its file."""
    refused = test[explainer.predict_proba(test)[:, 1] <= 0.5].reset_index(drop=True)
    started = time.perf_counter()
    table = explainer.explain(refused, immutable=masked).table
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        explainer.save(Path(folder) / "model.gpae")
        judge = TabularExplainer.load(Path(folder) / "model.gpae")
    plans = table[table.found].reset_index(drop=True)
    people = refused.iloc[plans.row.to_numpy()].reset_index(drop=True)
    return {
        "masked": bool(masked),
        "refused": len(refused),
        "found": int((judge.predict_proba(plans)[:, 1] > 0.5).sum()),
        "proved_infeasible": int((table.status == "infeasible").sum()),
        "immutables_moved": int(sum((plans[c].astype(str) != people[c].astype(str)).sum() for c in masked)),
        "out_of_range": out_of_range(train, people, plans),
        "unknown_levels": unknown_levels(train, plans),
        "fractions": fractions(train, people, plans),
        "distance": float(plans.distance.mean()),
        "changes": float(plans.changes.mean()),
        "plausibility": float(plans.plausibility.mean()),
        "rows_per_second": round(len(refused) / seconds, 1),
    }


def out_of_range(train: pd.DataFrame, people: pd.DataFrame, plans: pd.DataFrame) -> int:
    """Cells outside [min(training min, own), max(training max, own)]."""
    count = 0
    for name in numeric(train):
        low, high = np.minimum(train[name].min(), people[name]), np.maximum(train[name].max(), people[name])
        count += int(((plans[name].astype(float) < low) | (plans[name].astype(float) > high)).sum())
    return count


def unknown_levels(train: pd.DataFrame, plans: pd.DataFrame) -> int:
    texts = [c for c in train if c in plans and c not in numeric(train)]
    return int(sum((~plans[c].dropna().isin(train[c].dropna().unique())).sum() for c in texts))


def fractions(train: pd.DataFrame, people: pd.DataFrame, plans: pd.DataFrame) -> int:
    """Changed cells of whole-number columns that are not whole."""
    count = 0
    for name in numeric(train):
        if (train[name] % 1 == 0).all():
            changed = plans[name].astype(float) != people[name].astype(float)
            count += int((changed & (plans[name].astype(float) % 1 != 0)).sum())
    return count


def numeric(frame: pd.DataFrame) -> list[str]:
    return [c for c in frame.select_dtypes("number").columns if c not in {d.label for d in datasets.DATASETS.values()}]


def solvers(explainer: TabularExplainer, pool: pd.DataFrame, n_rows: int, n_iterations: int) -> dict[str, object]:
    """The two solvers on the same relaxed problems, at the chosen beta."""
    method = explainer.method_
    X = explainer.codec_.encode(pool).rows
    X = X[method.classifier_.decision_function(X) < 0][:n_rows]
    lower, upper = method.layout_.box(X)
    problem = method.problem(Query(X, np.ones(len(X), dtype=np.int64), lower, upper))
    fast, fast_seconds = timed(lambda: newton.solve(method.surface(), problem))
    slow, slow_seconds = timed(lambda: reference.solve(method.surface(), problem, n_iterations=n_iterations))
    on_boundary = fast.violation <= torch.clamp(problem.margin / 100, min=1e-4)
    good = on_boundary & (fast.kkt <= 1e-3) & (fast.iterations <= 30)
    reached = slow.violation <= torch.clamp(problem.margin / 100, min=1e-4)
    no_worse = fast.objective <= slow.objective + 1e-3 * slow.objective.abs().clamp(min=1)
    better = fast.objective < slow.objective - 1e-3 * slow.objective.abs().clamp(min=1)
    return {
        "rows": len(X),
        "beta": method.beta_,
        "newton_converged_in_30": share(good),
        "newton_on_boundary": share(on_boundary),
        "newton_iterations_median": float(fast.iterations.double().median()),
        "newton_iterations_p99": float(fast.iterations.double().quantile(0.99)),
        "reference_on_boundary": share(reached),
        "reference_converged": share(reached & (slow.kkt <= 1e-3)),
        "newton_no_worse": share((no_worse | ~reached)[reached]) if reached.any() else float("nan"),
        "newton_better": share(better[reached]) if reached.any() else float("nan"),
        "newton_objective": float(fast.objective.mean()),
        "reference_objective": float(slow.objective.mean()),
        "speed_ratio": round(slow_seconds / fast_seconds, 1),
    }


def timed(work):
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def share(flags: torch.Tensor) -> float:
    return float(flags.double().mean())


def density(explainer: TabularExplainer, train: pd.DataFrame, test: pd.DataFrame) -> dict[str, object]:
    """Held-out log-likelihood of the latents beside the Gaussian envelope's and a cross-validated KDE's."""
    inner = explainer.method_.classifier_
    codec, tilt = explainer.codec_, inner.density_
    latents = [torch.as_tensor(inner.transform(codec.encode(part).rows)) for part in (train, test)]
    ours, envelope = (float(f(tilt, latents[1]).mean()) for f in (log_density, log_envelope))
    white = [torch.linalg.solve_triangular(tilt.factor, (z - tilt.mean).T, upper=False).T.numpy() for z in latents]
    seen = {row.tobytes() for row in white[0]}
    new = np.array([row.tobytes() not in seen for row in white[1]])
    sample = np.random.default_rng(0).permutation(len(white[0]))[:4000]
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 1.0, 10)}, cv=3).fit(white[0][sample])
    volume = float(tilt.factor.diagonal().log().sum())
    kde = float(search.best_estimator_.score_samples(white[1][new]).mean()) - volume
    return {
        "held_out": ours,
        "envelope": envelope,
        "gain": ours - envelope,
        "log_normaliser_error": float(tilt.normaliser_error),
        "held_out_new_latents": float(log_density(tilt, latents[1][new]).mean()),
        "kde_new_latents": kde,
        "copies_removed": float((~new).mean()),
        "integral_in_2d": integral(explainer, train),
    }


def integral(explainer: TabularExplainer, train: pd.DataFrame) -> float:
    """The density of a model with two latents, integrated over twelve standard deviations by the trapezoid rule."""
    codec, seed = explainer.codec_, explainer.seed
    plane = GPAEClassifier(latent_dim=2, max_epochs=20, random_state=seed)
    tilt = plane.fit(codec.encode(train).rows, codec.labels(train)).density_
    axis = torch.linspace(-12, 12, 1201, dtype=torch.float64)
    white = torch.cartesian_prod(axis, axis)
    values = torch.cat([log_density(tilt, tilt.mean + part @ tilt.factor.T) for part in white.split(50_000)])
    lines = torch.trapezoid(values.exp().reshape(len(axis), len(axis)), axis, dim=1)
    return float(torch.trapezoid(lines, axis, dim=0) * tilt.factor.diagonal().prod())


def betas(explainer: TabularExplainer) -> list[dict[str, object]]:
    choice = explainer.method_.density_weight_
    return [
        {"beta": float(b), "divergence": float(v), "standard_error": float(e), "chosen": bool(b == choice.beta)}
        for b, v, e in zip(choice.grid, choice.divergence, choice.standard_error, strict=True)
    ]


def write_tables(output: Path, cells: Path) -> None:
    records = [json.loads(path.read_text()) for path in sorted(cells.glob("*.json"))]
    for table in ("classification", "answers", "solvers", "density", "beta"):
        frame = pd.DataFrame([row for record in records for row in record[table]])
        frame.round(5).to_csv(output / f"{table}.csv", index=False)


def draw_divergence(output: Path) -> None:
    """KL(beta) of every seed, one panel a data set, with the chosen beta and the paper's."""
    import matplotlib.pyplot as plt

    curves = pd.read_csv(output / "beta.csv")
    names = list(curves.dataset.unique())
    figure, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3), layout="constrained", squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        for _, curve in curves[curves.dataset == name].groupby("seed"):
            (line,) = axis.plot(curve.beta, curve.divergence, lw=1)
            chosen = curve[curve.chosen]
            axis.plot(chosen.beta, chosen.divergence, "o", color=line.get_color(), ms=5)
        axis.axvline(0.4, color="0.7", ls=":", lw=1)
        axis.set(title=name, xscale="log", xlabel="beta")
    axes[0, 0].set_ylabel("KL(q | p) on the boundary, nats")
    figure.suptitle("Dots: the chosen beta of each seed. Dotted line: the paper's choice for LCD (0.4).", fontsize=9)
    figure.savefig(output / "divergence.png", dpi=110)


def write_run(output: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    run = {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit,
        "gpae": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    (output / "run.json").write_text(json.dumps(run, indent=1) + "\n")


if __name__ == "__main__":
    main()
