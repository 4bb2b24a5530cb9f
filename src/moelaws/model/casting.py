"""Casts weights to the computing type, once per step however many micro-batches use them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

Chosen = Callable[[Tensor], bool]
# The casts by weight and type, and which weights' casts are kept; None outside ``casting_once``
_casts: ContextVar[tuple[dict[tuple[Tensor, torch.dtype], Tensor], Chosen] | None] = ContextVar(
    "casts", default=None
)


def cast(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns ``weight`` in ``dtype``; ``weight`` gets its gradient in its own type."""
    kept = _casts.get()
    if kept is None or weight.dtype == dtype:
        return weight.to(dtype)
    casts, chosen = kept
    if not chosen(weight):
        return weight.to(dtype)
    key = (weight, dtype)
    if key not in casts:
        casts[key] = weight.to(dtype)
    return casts[key]


@contextmanager
def casting_once(chosen: Chosen = lambda weight: True) -> Iterator[None]:
    """Keeps each cast of a ``chosen`` weight until the block ends; no weight may change within it.

    The gradients are the same bit for bit, because each backward pass goes through the kept cast.
    """
    token = _casts.set(({}, chosen))
    try:
        yield
    finally:
        _casts.reset(token)
