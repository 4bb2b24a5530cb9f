"""Rough estimates of a run's time and memory, for scheduling and planning.

The numbers behind the estimates are below and in ``cost.toml``, each with its source. Runs that
differ in length alone share their trunk, and really spend less.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import Model, MoE
from moelaws.spec.project import Project
from moelaws.spec.run import Muon, RunConfig
from moelaws.spec.words import counted

PerRun = int | Literal["auto"]


@dataclass(frozen=True)
class Device:
    """Speed, overheads and memory of a device that trains."""

    name: str
    flops_per_second: float  # sustained by large models
    seconds_per_layer_step: float  # overhead per layer and optimizer step; small models feel it
    seconds_per_expert_step: float  # further overhead for each routed expert of the layer
    startup_seconds: float
    base_memory: float  # bytes of the host that the process takes before the model
    own_memory: float  # bytes of the device's own memory; 0 if it uses the host's
    runs: int = 0  # how many runs of this machine the times were learned from
    memory_bandwidth: float = math.inf  # bytes a second of its own memory
    node_bandwidth: float = math.inf  # bytes a second that it sends to others of its node
    network_bandwidth: float = math.inf  # bytes a second that it sends to other nodes
    # The tokens of a pass that has the overhead of a layer, which grows with them; 0: any number
    pass_tokens: float = 0.0
    # How many runs share the device; auto: as many as its memory holds, up to ``MAX_RUNS``.
    runs_at_once: PerRun = 1

    @property
    def basis(self) -> str:
        """Returns what estimates of time rest on, as a sentence; empty for built-in times."""
        if not self.runs:
            return ""
        runs = counted(self.runs, "finished run")
        return f"{self.name} hours are estimated from {runs} of this machine in results/"


GPUS = {key: Device(**about) for key, about in table_beside(__file__).items()}
CPU = GPUS.pop("cpu")
H100 = GPUS["h100"]
MFU = 0.35  # the share of a GPU's peak that its speed is
# A pass takes as long as one of so many tokens at least, for its kernels begin one after the other.
# Those of other runs fill the gaps. It is assumed: 3 microseconds for each of 200 kernels a layer.
FEWEST_TOKENS = 16_384
# A run that shares a GPU is assumed (not measured) to need more memory than its tensors: bytes for
# CUDA and its libraries in each process, and a factor for unused blocks.
PROCESS_MEMORY, UNUSED = 1.5e9, 1.25
MAX_RUNS = 8  # on one GPU, by `auto`: they also share its time


def device_of(kind: Literal["cpu", "cuda"], project: Project) -> Device:
    """Returns what the project's estimates assume: a core, or an H100 of its memory and ``mfu``."""
    if kind == "cpu":
        return CPU
    return replace(
        H100,
        flops_per_second=H100.flops_per_second * project.mfu / MFU,
        own_memory=project.gpu_memory * 1e9,
        runs_at_once=project.runs_per_gpu,
    )


@dataclass(frozen=True)
class Cost:
    """Estimates for one run on one device, or on several that train it together."""

    flops: float  # training FLOPs, by the sparsity paper's convention
    seconds: float  # while others train beside it
    host_bytes: float  # of all its processes
    device_bytes: float  # of each device; 0 if it uses the host's memory
    micro_batch: int  # sequences that a device computes at a time
    devices: int = 1
    runs_at_once: int = 1  # on the device, itself among them

    @property
    def device_seconds(self) -> float:
        """Returns the seconds summed over the devices, or the run's part of those of one."""
        return self.seconds * self.devices / self.runs_at_once


# The logits that exist at once, at most, on a device with memory of its own and on a CPU, and the
# bytes of each with its gradient: ``model.head``.
ENTRIES, ENTRIES_ON_CPU, ENTRY_BYTES = 1 << 26, 1 << 24, 8.0
MANY = 1 << 20  # devices: more than any run takes


def estimate(config: RunConfig, device: Device = CPU, devices: int = 1) -> Cost:
    """Estimates seconds and bytes for training ``config`` on ``devices`` of one kind together.

    A batch that does not fit into the device's own memory is computed in micro-batches. They are
    halved until they fit, or down to the smallest possible one. Batches in the host's memory stay
    whole. Communication between devices is assumed to take no time. Runs on one device share its
    time but for their starts, at which the device idles.
    """
    model = config.model
    states = state_bytes(config, devices)
    group = config.smallest_micro_batch
    tokens_per_group = group * model.context

    def held(groups: int) -> float:
        tokens = groups * tokens_per_group
        entries = ENTRIES if device.own_memory else ENTRIES_ON_CPU
        logits = ENTRY_BYTES * min(tokens * model.vocab_size, entries)
        return states + tokens * activation_bytes(model, config.precision) + logits

    groups = at_once = math.ceil(config.groups / devices)
    room = device.own_memory or math.inf
    while at_once > 1 and held(at_once) > room:
        at_once = math.ceil(at_once / 2)
    training = held(at_once)

    # An evaluation is the forward pass alone, a third of the work of training on as much text.
    texts = 1 + (config.evaluation.longer > 1)
    evaluated = texts * config.evaluation.sequences / (3 * config.batch * config.steps)
    asked: PerRun = device.runs_at_once if devices == 1 else 1
    fitting = min(MAX_RUNS, room // (PROCESS_MEMORY + UNUSED * training))
    together = asked if isinstance(asked, int) else max(1, int(fitting))
    passes = config.steps * math.ceil(groups / at_once)
    work = _work(config, device, passes, devices, together) * (1 + evaluated)
    # A GPU's checkpoint passes through the host.
    on_host = states if device.own_memory else training
    return Cost(
        flops=train_flops_per_token(model, "sparsity") * config.tokens,
        seconds=device.startup_seconds + together * float(work @ _prices(device)),
        host_bytes=devices * (device.base_memory + on_host),
        device_bytes=training if device.own_memory else 0.0,
        micro_batch=at_once * group,
        devices=devices,
        runs_at_once=together,
    )


def placed(
    config: RunConfig, device: Device = CPU, per_run: PerRun = "auto", max_devices: int = MANY
) -> Cost:
    """Estimates ``config`` on as many devices as it takes.

    ``per_run`` sets their number, up to the number of balance groups in a batch. ``auto`` takes the
    fewest of 1, 2, 4, ... whose memory holds the run; else the fewest that hold it with an equal
    number of experts each; else the largest number possible, at most ``max_devices``. If none holds
    it, ``auto`` takes the number that needs the least memory on each. CPU cores train alone.
    """
    if per_run != "auto":
        return estimate(config, device, min(per_run, config.groups))
    ffn = config.model.ffn
    E = ffn.n_experts if isinstance(ffn, MoE) else 1
    max_devices = min(max_devices, config.groups)
    powers = (2**i for i in range(max_devices.bit_length()))
    equal = (n for n in range(1, min(E, max_devices) + 1) if E % n == 0)
    tried: list[Cost] = []
    for number in chain(powers, equal, [max_devices]):
        tried.append(estimate(config, device, number))
        if tried[-1].device_bytes <= device.own_memory:
            return tried[-1]
    return min(tried, key=lambda cost: cost.device_bytes)


def state_bytes(config: RunConfig, devices: int = 1) -> float:
    """Estimates the bytes that a device holds of the model, without activations.

    These are weights, gradients and two moments in fp32, and casts of the weights to bf16 that are
    kept during a step. Each of several devices holds a part of them. While a layer computes, its
    weights are gathered on every device, and so are those of the next layer and the layer's
    gradients. Routed experts are not gathered if each device holds at least one of them.
    """
    model, count = config.model, count_parameters(config.model)
    casts = 2.0 if config.precision == "bf16" else 0.0
    if devices == 1:
        return (16.0 + casts) * count.total
    E = model.ffn.n_experts if isinstance(model.ffn, MoE) else 0
    dealt = count.routed_experts if devices <= E else 0
    stay = dealt * math.ceil(E / devices) / E if dealt else 0.0
    gathered = count.total - dealt
    a_layer = (gathered - count.embeddings) / model.n_layers
    return (
        16.0 * (stay + gathered / devices)
        + casts * (stay + gathered)
        + 12.0 * a_layer
        + 8.0 * count.embeddings
    )


@dataclass(frozen=True)
class Timing:
    """A trained run and the seconds that all its steps take."""

    config: RunConfig
    seconds: float


def fitted_to(device: Device, timings: Sequence[Timing]) -> Device:
    """Returns ``device`` with times scaled by the median ratio of measured to estimated seconds."""
    if not timings:
        return device
    prices = _prices(device)
    work = [_work(timing.config, device, timing.config.steps) for timing in timings]
    ratios = [each.seconds / (own @ prices) for each, own in zip(timings, work, strict=True)]
    ratio = float(np.median(ratios))
    return replace(
        device,
        flops_per_second=device.flops_per_second / ratio,
        seconds_per_layer_step=device.seconds_per_layer_step * ratio,
        seconds_per_expert_step=device.seconds_per_expert_step * ratio,
        runs=len(timings),
    )


def orthogonalizing_flops(model: Model) -> float:
    """Estimates the FLOPs that a step of Muon takes to make the momentum of matrices orthogonal.

    Of a matrix with the sides a <= b each of five rounds takes two products of a a b and one of
    a a a. All matrices are taken to be as wide and as long as those of an expert.
    """
    ffn, count = model.ffn, count_parameters(model)
    a, b = sorted((model.d_model, ffn.d_expert if isinstance(ffn, MoE) else ffn.d_ffn))
    return 5 * 2 * (2 * a + a * a / b) * (count.total - count.embeddings)


def _work(
    config: RunConfig, device: Device, passes: int, devices: int = 1, together: int = 1
) -> NDArray[np.float64]:
    """Returns a device's work: its FLOPs, layers times passes, and routed experts times passes.

    Where the overhead of a layer grows with the tokens, passes of ``pass_tokens`` are counted.
    """
    model, ffn = config.model, config.model.ffn
    flops = train_flops_per_token(model, "sparsity") * config.tokens
    if isinstance(config.optimizer, Muon):
        flops += orthogonalizing_flops(model) * config.steps
    experts = model.n_moe_layers * ffn.n_experts if isinstance(ffn, MoE) else 0
    layers: float = model.n_layers * passes
    if device.pass_tokens:
        fewest = FEWEST_TOKENS * passes / together
        layers = model.n_layers * max(config.tokens / devices, fewest) / device.pass_tokens
    return np.array([flops / devices, layers, experts * passes / devices], float)


def _prices(device: Device) -> NDArray[np.float64]:
    """Returns the seconds that a unit of each entry of ``_work`` takes."""
    overheads = device.seconds_per_layer_step, device.seconds_per_expert_step
    return np.array([1 / device.flops_per_second, *overheads])


def activation_bytes(model: Model, precision: Literal["fp32", "bf16"]) -> float:
    """Estimates the bytes per token that wait for the backward pass.

    Logits are not among them, for a chunk of them exists at once. The counts follow what the built
    models keep: 16 d for a layer's residual stream, norms and attention; the input, the output and
    two hidden rows of each routed expert; and four hidden rows of an MLP for all tokens. Where
    experts on slices see chunks, a token passes only one of them.
    """
    d, ffn = model.d_model, model.ffn
    passed = 1.0
    if model.slices and model.slices.positions == "chunks":
        passed = 1 / model.slices.n_experts
    values = 16 * d * (model.n_full_layers + passed * model.n_sliced_layers)
    if isinstance(ffn, MoE):
        routed = 2 * ffn.top_k * (d + ffn.d_expert)
        shared = 4 * ffn.n_shared * ffn.d_expert
        values += model.n_moe_layers * (routed + shared + 2 * ffn.n_experts)
    dense = 0 if ffn.d_ffn is None else ffn.d_ffn
    values += (model.n_full_layers - model.n_moe_layers) * 4 * dense
    if model.slices:  # each expert's MLP, and what it adds to the residual stream
        hidden = 4 * passed * model.slices.n_experts * model.slices.d_expert
        values += model.n_sliced_layers * (hidden + 2 * d)
    # With bf16 the residual stream, the norms and the router still stay in fp32.
    width = 4.0 if precision == "fp32" else 2.8
    # The second term is the embedding, the last hidden state and its gradient.
    return width * values + 16 * d


def shared_steps(
    runs: Iterable[RunConfig], kept: Mapping[str, Sequence[int]] = {}
) -> dict[str, int]:
    """Returns run_id -> the first steps of a run that a shorter run of its trunk trains.

    Runs that share nothing are left out. So are those that have ``kept`` weights on the way, after
    the steps given.
    """
    sharing = (run for run in runs if run.trunk and not kept.get(run.run_id))
    shared: dict[str, int] = {}
    before: dict[str | None, RunConfig] = {}  # the next shorter run of each trunk
    for run in sorted(sharing, key=lambda run: run.steps):
        shorter = before.get(run.trunk, run)
        if shorter.steps < run.steps:
            shared[run.run_id] = min(shorter.branch_step, run.branch_step)
        before[run.trunk] = run
    return shared


def spent(runs: Sequence[RunConfig], kept: Mapping[str, Sequence[int]] = {}) -> Sequence[RunConfig]:
    """Returns each of the ``runs`` with as many steps as it trains itself."""
    if not (shared := shared_steps(runs, kept)):
        return runs
    return [run.of_length(max(1, run.steps - shared.get(run.run_id, 0))) for run in runs]
