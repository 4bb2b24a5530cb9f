"""Options for a budget and for the limits of a plan, with the units that people write."""

import math
import re
from dataclasses import replace

import click

from moelaws.accounting.cost import GPUS, MFU, Device
from moelaws.analysis.advice import Constraints
from moelaws.analysis.advice.plans import TRAINING_BYTES, USED, USUAL_CEILING
from moelaws.cli.common import COUNTS, Value, between, gathered, option
from moelaws.spec.errors import UserError
from moelaws.spec.numbers import amount

_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BYTES |= {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
# Defaults: passes over the text, bytes of a served parameter, and sequences served at once
_EPOCHS, _SERVED_BYTES, _SEQUENCES = 1.0, 2.0, 32


def _bytes(text: str) -> float:
    size, unit = re.fullmatch(r"([0-9.eE+]+)\s*([A-Za-z]*)", text).groups()  # type: ignore[union-attr]
    if not unit and float(size) < 1e6:
        raise UserError(f"{text!r} is that many bytes; did you mean {text}GB?")
    return float(size) * _BYTES[unit]


_AMOUNT = Value("NUMBER", amount, lambda x: 1e-30 < x < 1e30,
                 "no number above 1e-30 and below 1e30, such as 1e21 or 2T")  # fmt: skip
_MEMORY = Value("BYTES", _bytes, lambda x: 1e6 < x < math.inf,
                 "no amount of memory with its unit, such as 80GB or 80GiB")  # fmt: skip


def _constraints(
    compute: float | None,
    gpu_hours: float | None,
    gpu: str | None,
    mfu: float,
    network: float | None,
    gpus: int | None,
    memory: float | None,
    serve_memory: float | None,
    bytes_per_parameter: float,
    serve_sequences: int,
    inference_tokens: float | None,
    max_tokens: float | None,
    epochs: float,
    max_sparsity: float,
    experts: tuple[int, ...],
    top_k: int | None,
    granularity: float | None,
) -> tuple[Constraints, Device]:
    """Returns the constraints, and the device whose hours are printed."""
    if (compute is None) == (gpu_hours is None):
        raise UserError("give the budget either as --compute FLOPS or as --gpu-hours HOURS")
    if epochs != _EPOCHS and max_tokens is None:
        raise UserError(f"--epochs {epochs:g} limits nothing without --max-tokens; give both")
    served = {"bytes-per-parameter": bytes_per_parameter, "serve-sequences": serve_sequences}
    for (name, value), usual in zip(served.items(), (_SERVED_BYTES, _SEQUENCES), strict=True):
        if value != usual and serve_memory is None:
            raise UserError(f"--{name} {value:g} limits nothing without --serve-memory; give both")
    own = GPUS[gpu or "h100"]
    device = replace(own, flops_per_second=own.flops_per_second * mfu / MFU)
    if network:
        device = replace(device, network_bandwidth=1e9 * network)
    limits = {}
    if serve_memory:
        limits["the memory to serve from"] = serve_memory / bytes_per_parameter
    own_memory = (memory or device.own_memory) if gpus or memory else math.inf
    if own_memory < math.inf:
        held = (gpus or 1) * own_memory * USED
        limits["the memory to train in"] = held / TRAINING_BYTES
    constraints = Constraints(
        compute=compute or gpu_hours * 3600 * device.flops_per_second,  # type: ignore[operator]
        served_tokens=inference_tokens or 0.0,
        max_parameters=limits,
        serve_memory=serve_memory or math.inf,
        serve_bytes=bytes_per_parameter,
        serve_sequences=serve_sequences,
        max_tokens=max_tokens * epochs if max_tokens else math.inf,
        max_sparsity=max_sparsity,
        experts=experts,
        device=device,
        gpus=gpus or 1,
        gpu_memory=own_memory,
        k=top_k,
        G=granularity,
    )
    return constraints, device


# The command receives ``chosen``: the constraints and the device.
constraint_options = gathered(
    "chosen",
    _constraints,
    option("--compute", "FLOPs of all training.", _AMOUNT),
    option("--gpu-hours", "The budget as hours of one GPU, all together.", _AMOUNT),
    option(
        "--gpu",
        "Which GPU.  [default: h100]",
        click.Choice(list(GPUS)),
    ),
    option(
        "--mfu",
        "Assumed speed of large products, as a fraction of its data sheet's.",
        between(0.01, 1.0),
        MFU,
    ),
    option(
        "--network",
        "GB/s that each GPU sends to other nodes.  [default: 50, and 25 for a100]",
        between(0.01, 1e5),
    ),
    option("--gpus", "GPUs that share one training.", click.IntRange(1, 10**6)),
    option("--memory", "Memory of each of them, such as 80GB.", _MEMORY),
    option("--serve-memory", "Memory for served weights and their KV cache.", _MEMORY),
    option(
        "--bytes-per-parameter",
        "Bytes of a served weight: 2 for bf16, 1 for fp8, 0.5 for int4.",
        _AMOUNT,
        _SERVED_BYTES,
    ),
    option(
        "--serve-sequences",
        "Sequences of full context whose KV cache it holds.",
        click.IntRange(0, 10**6),
        _SEQUENCES,
    ),
    option(
        "--inference-tokens",
        "Tokens to serve over the model's life, which the budget pays too: 2 N_active FLOPs each. "
        "If left out, the served plan serves as many as it trains on.",
        _AMOUNT,
    ),
    option("--max-tokens", "Training tokens at hand.", _AMOUNT),
    option("--epochs", "How often each of them may be seen.", _AMOUNT, _EPOCHS),
    option(
        "--max-sparsity",
        "The sparsest mixture to look at; 0 for dense models alone.",
        between(0.0, 0.9999),
        USUAL_CEILING,
    ),
    option("--experts", "Numbers of experts, with --top-k.", COUNTS, ()),
    option("--top-k", "Active experts a token; by r* if left out.", click.IntRange(1, 64)),
    option(
        "--granularity",
        "2 d_model / d_expert; by the leverage paper's law if left out.",
        between(0.25, 64.0),
    ),
)
