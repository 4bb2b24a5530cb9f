"""Elementwise functions that a GPU computes in one kernel, compiled by torch.

A GPU spends most of a small model's step on reading and writing tensors between such operations.
"""

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Map = Callable[[Tensor], Tensor]
P = ParamSpec("P")
R = TypeVar("R")
SIZES = 256  # A function is compiled for each size of model; one process may have so many


def fused(rows: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compiles a pure function for tensors on a GPU; elsewhere it runs as it stands.

    The first ``rows`` arguments are tensors whose first axis may have any length. All other sizes
    are constants of the kernels, for a kernel that divides by them to find its place would be some
    times slower. torch keeps compiled kernels on disk for later processes. The import of its
    compiler takes a second, so that it waits for the first call.

    Gradients flow through a call as through ``function``.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            first = args[0]
            assert isinstance(first, Tensor)
            if not first.is_cuda or not can_compile():
                return function(*args, **keywords)
            compiled, mark = compiler()
            for tensor in args[:rows]:
                mark(tensor, 0)
            result: R = compiled(function)(*args, **keywords)
            return result

        return call

    return decorate


@cache
def can_compile() -> bool:
    """Returns whether this machine has what Triton builds a kernel's launcher with."""
    triton = importlib.util.find_spec("triton")
    header = Path(sysconfig.get_path("include"), "Python.h")
    compilers = (os.environ.get("CC", ""), "clang", "gcc")
    return bool(triton and header.exists() and any(map(shutil.which, compilers)))


@cache
def compiler() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns torch's compiler of a function, and what tells it that a size may vary."""
    torch._dynamo.config.recompile_limit = SIZES
    compiled = cache(lambda function: torch.compile(function, dynamic=False))
    return compiled, torch._dynamo.maybe_mark_dynamic


class _Mapped(torch.autograd.Function):
    """A linear map whose gradient is given as a map of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Map, back: Map) -> Tensor:
        ctx.back = back
        return there(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(gradient), None, None


def mapped(x: Tensor, there: Map, back: Map) -> Tensor:
    """Returns ``there(x)``, whose gradient ``back`` maps to that of ``x``."""
    out: Tensor = _Mapped.apply(x, there, back)  # type: ignore[no-untyped-call]
    return out
