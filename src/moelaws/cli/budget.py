"""Options for a budget and for the limits of a plan, with the units that people write."""

import math
from dataclasses import replace
from typing import Any

import click
from pydantic import ByteSize, TypeAdapter

from moelaws.accounting.cost import GPUS, MFU, Device
from moelaws.analysis.advice import Constraints
from moelaws.analysis.advice.plans import TRAINING_BYTES, USED, USUAL_CEILING
from moelaws.cli.common import COUNTS, Value, between, option, with_options
from moelaws.spec.errors import UserError
from moelaws.spec.numbers import amount

_AMOUNT = Value("NUMBER", amount, lambda x: 1e-30 < x < 1e30,
                 "no number above 1e-30 and below 1e30, such as 1e21 or 2T")  # fmt: skip
_MEMORY = Value("BYTES", TypeAdapter(ByteSize).validate_python, lambda x: 1e6 < x < 1e30,
                 "no amount of memory with its unit, such as 80GB or 80GiB")  # fmt: skip


def constraints(
    compute: float | None,
    gpu_hours: float | None,
    gpu: str | None,
    mfu: float,
    network: float | None,
    gpus: int | None,
    memory: float | None,
    **limits: Any,
) -> tuple[Constraints, Device]:
    """Returns the constraints, and the device whose hours are printed.

    ``limits`` are fields of ``Constraints``; one that is None keeps its default.
    """
    if (compute is None) == (gpu_hours is None):
        raise UserError("give the budget either as --compute FLOPS or as --gpu-hours HOURS")
    given = {name: value for name, value in limits.items() if value is not None}
    if "serve_memory" not in given and given.keys() & {"serve_bytes", "serve_sequences"}:
        raise UserError(
            "--bytes-per-parameter and --serve-sequences limit nothing without --serve-memory"
        )
    own, most = GPUS[gpu or "h100"], {}
    device = replace(own, flops_per_second=own.flops_per_second * mfu / MFU)
    if network:
        device = replace(device, network_bandwidth=1e9 * network)
    if "serve_memory" in given:
        a_parameter = given.get("serve_bytes", Constraints.serve_bytes)
        most["the memory to serve from"] = given["serve_memory"] / a_parameter
    own_memory = math.inf
    if gpus or memory:
        own_memory = memory or device.own_memory
        most["the memory to train in"] = (gpus or 1) * own_memory * USED / TRAINING_BYTES
    budget = compute or gpu_hours * 3600 * device.flops_per_second  # type: ignore[operator]
    given |= {"max_parameters": most, "gpus": gpus or 1, "gpu_memory": own_memory}
    return Constraints(budget, device=device, **given), device


# The options of ``constraints``
constraint_options = with_options(
    option("--compute", "FLOPs of all training.", _AMOUNT),
    option("--gpu-hours", "The budget as hours of one GPU, all together.", _AMOUNT),
    option("--gpu", "Which GPU.  [default: h100]", click.Choice(GPUS)),
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
        "--bytes-per-parameter serve_bytes",
        "Bytes of a served weight: 2 for bf16, 1 for fp8, 0.5 for int4.  [default: 2]",
        _AMOUNT,
    ),
    option(
        "--serve-sequences",
        "Sequences of full context whose KV cache it holds.  [default: 32]",
        click.IntRange(0, 10**6),
    ),
    option(
        "--inference-tokens served_tokens",
        "Tokens to serve over the model's life, which the budget pays too: 2 N_active FLOPs each. "
        "If left out, the served plan serves as many as it trains on.",
        _AMOUNT,
    ),
    option("--max-tokens", "Training tokens at hand, times how often each may be seen.", _AMOUNT),
    option(
        "--text-tokens",
        "Different training tokens at hand: says so if the model passes over them too often.",
        _AMOUNT,
    ),
    option(
        "--max-sparsity",
        "The sparsest mixture to look at; 0 for dense models alone.",
        between(0.0, 0.9999),
        USUAL_CEILING,
    ),
    option("--experts", "Numbers of experts, with --top-k.", COUNTS),
    option("--top-k k", "Active experts a token; by r* if left out.", click.IntRange(1, 64)),
    option(
        "--granularity G",
        "2 d_model / d_expert; by the leverage paper's law if left out.",
        between(0.25, 64.0),
    ),
)
