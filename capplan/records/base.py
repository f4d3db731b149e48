"""What all records share."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A named bundle of quantities: frozen, strictly typed, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )
