"""Models as users bring them: pipelines on raw tables, of every usual kind."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

__all__ = ["MODELS", "fitted"]

_SVM_ROWS = 4000
"""A kernel machine asks every one of its rows about every question."""


def _forest(seed: int) -> Any:
    return RandomForestClassifier(100, min_samples_leaf=5, random_state=seed, n_jobs=1)


def _xgboost(seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, max_depth=4, random_state=seed, n_jobs=1)


def _lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=100, num_leaves=15, random_state=seed, n_jobs=1, verbose=-1)


MODELS: dict[str, Callable[[int], Any]] = {
    "logistic regression": lambda seed: LogisticRegression(max_iter=2000),
    "random forest": _forest,
    "XGBoost": _xgboost,
    "LightGBM": _lightgbm,
    "MLP": lambda seed: MLPClassifier((32, 32), random_state=seed, early_stopping=True, max_iter=100),
    "SVM": lambda seed: SVC(random_state=seed),
}


def fitted(name: str, X: pd.DataFrame, y: pd.Series, seed: int) -> Pipeline:
    """A pipeline with a model of this kind at its end, fitted to a raw table and labels coded 0 and 1."""
    levels = [column for column in X if not pd.api.types.is_numeric_dtype(X[column])]
    numbers = [column for column in X if column not in levels]
    before = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), levels),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        verbose_feature_names_out=False,
    )
    pipeline = make_pipeline(before, MODELS[name](seed))
    if name == "SVM" and len(X) > _SVM_ROWS:
        X = X.sample(_SVM_ROWS, random_state=seed)
        y = y.loc[X.index]
    return pipeline.fit(X, y)
