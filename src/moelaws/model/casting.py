"""Weights in the computing type, cast once a step however many micro-batches use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

# Casts made so far by weight and type; None outside ``casting_once``.
_casts: ContextVar[dict[tuple[Tensor, torch.dtype], Tensor] | None] = ContextVar(
    "casts", default=None
)


def cast(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns ``weight`` in ``dtype``; its gradient goes to ``weight`` in the weight's own type."""
    casts = _casts.get()
    if casts is None or weight.dtype == dtype:
        return weight.to(dtype)
    key = (weight, dtype)
    if key not in casts:
        casts[key] = weight.to(dtype)
    return casts[key]


@contextmanager
def casting_once() -> Iterator[None]:
    """Keeps each cast until the end of the block, in which no weight may change.

    The gradients are the same bit for bit: each backward pass goes through the one cast again.
    """
    token = _casts.set({})
    try:
        yield
    finally:
        _casts.reset(token)
