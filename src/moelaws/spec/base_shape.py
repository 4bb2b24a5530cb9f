"""The shape at which hyperparameters were found that a larger model takes over."""

from typing import Any, Self

from pydantic import model_validator

from moelaws.spec.base import Frozen, Size


class BaseShape(Frozen):
    """The sizes of the model at which all factors of a parameterization are one.

    It states each size that the larger model has, and no other, so that no ratio is one by silence.
    """

    d_model: Size
    n_layers: Size
    n_heads: Size
    n_kv: Size
    head_width: Size | None = None  # d_model / n_heads unless set
    d_ffn: Size | None = None  # of dense layers
    n_experts: Size | None = None
    top_k: Size | None = None
    d_expert: Size | None = None
    n_shared: Size | None = None

    @model_validator(mode="after")
    def _has_heads(self) -> Self:
        if self.head_width is None and self.d_model % self.n_heads:
            raise ValueError(
                f"d_model = {self.d_model} with n_heads = {self.n_heads}: the head width must be "
                "a whole number; head_width sets it apart from d_model"
            )
        return self

    @classmethod
    def of(cls, model: Any) -> Self:
        """Returns the sizes of a ``Model``."""
        sizes = {
            n: getattr(model, n, None) or getattr(model.ffn, n, None) for n in cls.model_fields
        }
        return cls(**{name: size for name, size in sizes.items() if size})

    @property
    def width_of_head(self) -> int:
        """Returns the width of a query, key or value."""
        return self.head_width or self.d_model // self.n_heads
