"""The base of what people write in a schema file: checked, unchangeable, nothing unknown in it."""

from pydantic import BaseModel, ConfigDict

__all__ = ["Frozen"]


class Frozen(BaseModel):
    """Values that are checked when they are read and cannot be changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
