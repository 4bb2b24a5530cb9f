"""Weights in the computing type, cast once a step however many micro-batches use them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

Chosen = Callable[[Tensor], bool]
# Casts made so far by weight and type, and of which weights they are kept; None outside
# ``casting_once``.
_casts: ContextVar[tuple[dict[tuple[Tensor, torch.dtype], Tensor], Chosen] | None] = ContextVar(
    "casts", default=None
)


def cast(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns ``weight`` in ``dtype``; its gradient goes to ``weight`` in the weight's own type."""
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
    """Keeps each cast of a ``chosen`` weight until the end of the block, in which none may change.

    The gradients are the same bit for bit: each backward pass goes through the one cast again.
    """
    token = _casts.set(({}, chosen))
    try:
        yield
    finally:
        _casts.reset(token)
