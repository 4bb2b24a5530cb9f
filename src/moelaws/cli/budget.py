"""Options of a budget and of what a plan has to keep to, with the units that people write."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.gathered import gathered
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    from moelaws.accounting.cost import Device
    from moelaws.analysis.advice import Constraints

_BYTES = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BYTES |= {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_EPOCHS, _SERVED_BYTES = 1.0, 2.0  # a parameter, unless told
_TRAINING_SHARE = 0.8  # of the memory for weights and optimizer states; activations take the rest


class Bytes(click.ParamType[float]):
    """An amount of memory, such as 80GB (1e9 bytes) or 80GiB (2^30)."""

    name = "BYTES"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        match = re.fullmatch(r"([0-9.eE+]+)\s*([A-Za-z]*)", str(value))
        try:
            number = float(match[1]) * _BYTES[match[2]] if match else math.nan
        except (KeyError, ValueError):
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"{value!r} is no amount of memory, such as 80GB or 80GiB", param, ctx)
        return number


class Amount(click.ParamType[float]):
    """A number above 0 and below 1e30."""

    name = "NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < 1e30:
            self.fail(f"{value!r} is no number above 0 and below 1e30, such as 1e21", param, ctx)
        return number


class Integers(click.ParamType[tuple[int, ...]]):
    """Whole numbers, joined by commas."""

    name = "N,N,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(word) for word in value.split(","))
        except ValueError:
            numbers = (0,)
        if min(numbers) < 1 or max(numbers) > 10**6:
            self.fail(f"{value!r} is no list of counts, such as 8,16,32", param, ctx)
        return numbers


def _constraints(
    compute: float | None,
    gpu_hours: float | None,
    gpu: str | None,
    gpus: int | None,
    memory: float | None,
    serve_memory: float | None,
    bytes_per_parameter: float,
    inference_tokens: float | None,
    max_tokens: float | None,
    epochs: float,
    max_sparsity: float,
    experts: tuple[int, ...],
    top_k: int | None,
    granularity: float | None,
) -> tuple[Constraints, Device]:
    """Returns the constraints, and the device whose hours are told."""
    from moelaws.accounting.cost import GPUS
    from moelaws.analysis.advice import Constraints
    from moelaws.analysis.advice.build import TRAINING_BYTES

    if (compute is None) == (gpu_hours is None):
        raise UserError("give the budget either as --compute FLOPS or as --gpu-hours HOURS")
    if epochs != _EPOCHS and max_tokens is None:
        raise UserError(f"--epochs {epochs:g} limits nothing without --max-tokens; give both")
    if bytes_per_parameter != _SERVED_BYTES and serve_memory is None:
        raise UserError(
            f"--bytes-per-parameter {bytes_per_parameter:g} limits nothing without --serve-memory; "
            "give both"
        )
    device = GPUS[gpu or "h100"]
    limits = {}
    if serve_memory:
        limits["the memory to serve from"] = serve_memory / bytes_per_parameter
    own_memory = (memory or device.own_memory) if gpus or memory else math.inf
    if own_memory < math.inf:
        held = (gpus or 1) * own_memory * _TRAINING_SHARE
        limits["the memory to train in"] = held / TRAINING_BYTES
    constraints = Constraints(
        compute=compute or gpu_hours * 3600 * device.flops_per_second,  # type: ignore[operator]
        served_tokens=inference_tokens or 0.0,
        max_parameters=limits,
        max_tokens=max_tokens * epochs if max_tokens else math.inf,
        max_sparsity=max_sparsity,
        experts=experts,
        gpus=gpus or 1,
        gpu_memory=own_memory,
        k=top_k,
        G=granularity,
    )
    return constraints, device


class _Range(click.ParamType[float]):
    """A number from ``low`` to ``high``; not NaN, which click's own range lets pass."""

    name = "NUMBER"

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not self.low <= number <= self.high:
            self.fail(f"{value!r} is no number from {self.low:g} to {self.high:g}", param, ctx)
        return number


_AMOUNT, _BYTES_TYPE = Amount(), Bytes()
# The command receives ``chosen``: the constraints and the device.
constraint_options = gathered(
    "chosen",
    _constraints,
    click.option("--compute", type=_AMOUNT, help="Training FLOPs, counted as 6 N_active D."),
    click.option("--gpu-hours", type=_AMOUNT, help="The budget as hours of one GPU, all together."),
    click.option(
        "--gpu",
        type=click.Choice(["h100", "h200", "a100"]),
        help="Which GPU; its speed is an assumed 35 % of its data sheet's.  [default: h100]",
    ),
    click.option("--gpus", type=click.IntRange(1, 10**6), help="GPUs that share one training."),
    click.option("--memory", type=_BYTES_TYPE, help="Memory of each of them, such as 80GB."),
    click.option("--serve-memory", type=_BYTES_TYPE, help="Memory that holds the served weights."),
    click.option(
        "--bytes-per-parameter",
        type=_AMOUNT,
        default=_SERVED_BYTES,
        show_default=True,
        help="Bytes of a served weight: 2 for bf16, 1 for fp8, 0.5 for int4.",
    ),
    click.option(
        "--inference-tokens",
        type=_AMOUNT,
        help="Tokens to serve over the model's life; the budget then pays 2 N_active FLOPs each.",
    ),
    click.option("--max-tokens", type=_AMOUNT, help="Training tokens at hand."),
    click.option(
        "--epochs",
        type=_AMOUNT,
        default=_EPOCHS,
        show_default=True,
        help="How often each of them may be seen.",
    ),
    click.option(
        "--max-sparsity",
        type=_Range(0.0, 0.9999),
        default=0.98,
        show_default=True,
        help="The sparsest mixture to look at; 0 for dense models alone.",
    ),
    click.option(
        "--experts",
        type=Integers(),
        default=(),
        help="Numbers of experts, with --top-k.",
    ),
    click.option(
        "--top-k", type=click.IntRange(1, 64), help="Active experts a token; by r* if left out."
    ),
    click.option(
        "--granularity",
        type=_Range(0.25, 64.0),
        help="2 d_model / d_expert; by the leverage paper's law if left out.",
    ),
)
