"""Estimates what runs cost together, in device hours and on disk, and whether that is too much.

``accounting.cost`` says how rough the estimates are. This module is light, because the Snakefile
uses it at each call.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moelaws.accounting.cost import CPU, Device, PerRun, device_of, placed, spent
from moelaws.accounting.parameters import count_parameters
from moelaws.files.layout import Results
from moelaws.grids.expand import Run
from moelaws.grids.sweep import Sweep
from moelaws.spec.project import Project
from moelaws.spec.words import counted, short

# As many runs are unfinished at once, each with a checkpoint, as profiles/slurm allows jobs.
AT_ONCE = 100
CHECKPOINT = 12.0  # bytes a parameter: fp32 weights and two moments
WEIGHTS = 4.0  # bytes a parameter: fp32
# Bytes of a run's folder with Snakemake's notes of it, and of each of at most 2000 logged steps, as
# measured on the demo's runs.
RECORD, LOGGED_STEP, LOGGED_STEPS = 2e4, 62.0, 2000
# moelaws probe keeps the hidden states of so many tokens, after the embedding and each layer.
PROBED_TOKENS = 2048


@dataclass(frozen=True)
class Budget:
    """What runs cost, by estimate."""

    device: Device  # whose seconds and hours these are
    runs: int  # their number
    flops: float  # of training each run alone, by the sparsity paper's convention (Eq 9)
    flops_spent: float  # the same, with steps that runs share counted once
    tokens: float  # of training, summed over runs
    seconds: float  # of one device: a run's own seconds times its devices, summed over runs
    seconds_by_run: Mapping[str, float]  # run_id -> its term of this sum
    disk: Mapping[str, float]  # kind of file -> bytes

    @property
    def hours(self) -> float:
        return self.seconds / 3600

    @property
    def disk_bytes(self) -> float:
        """Returns the bytes of all files that are on disk at the same time, at most."""
        return sum(self.disk.values())

    def as_dict(self) -> dict[str, object]:
        names = ("runs", "flops", "flops_spent", "tokens", "hours", "disk_bytes", "disk")
        return {"device": self.device.name, **{name: getattr(self, name) for name in names}}

    def words(self) -> str:
        disk = ", ".join(f"{name} {b / 1e9:.2g}" for name, b in self.disk.items() if b >= 5e6)
        saved = self.flops_spent < self.flops
        less = f", {self.flops_spent:.3g} of them spent with shared trunks" if saved else ""
        return (
            f"{counted(self.runs, 'run')} of {short(self.tokens)} tokens in all, "
            f"{self.flops:.3g} FLOPs{less}: about {self.hours:,.3g} {self.device.name} hours, "
            f"{self.disk_bytes / 1e9:,.3g} GB of disk" + (f" ({disk})" if disk else "")
        )


def budget(
    runs: Sequence[Run],
    device: Device,
    kept: Mapping[str, Sequence[int]] = {},
    probed: Collection[str] = (),
    per_run: PerRun = "auto",
) -> Budget:
    """Returns what training ``runs``, each once, costs on a ``device``.

    ``kept`` has the ids of runs whose final weights are kept, with the earlier steps whose weights
    are kept, too; ``probed`` has the ids of runs whose hidden states are kept; ``per_run`` devices
    train a run (``accounting.cost.placed``).
    """
    configs = [run.config for run in runs]
    own = spent(configs, kept)
    costs = [placed(config, device, per_run) for config in own]
    flops = [c.flops * x.steps / part.steps for c, x, part in zip(costs, configs, own, strict=True)]
    sizes = [count_parameters(config.model).total for config in configs]
    copies = {run: 1 + len(steps) for run, steps in kept.items()}
    held = [n * copies.get(run.run_id, 0) for run, n in zip(runs, sizes, strict=True)]
    logged = [min(config.steps, LOGGED_STEPS) for config in configs]
    return Budget(
        device=device,
        runs=len(runs),
        flops=sum(flops),
        flops_spent=sum(c.flops for c in costs),
        tokens=float(sum(config.tokens for config in configs)),
        seconds=sum(c.device_seconds for c in costs),
        seconds_by_run={r.run_id: c.device_seconds for r, c in zip(runs, costs, strict=True)},
        disk={
            "text": _text(runs),
            "records": RECORD * len(runs) + LOGGED_STEP * sum(logged),
            "checkpoints": CHECKPOINT * sum(sorted(sizes, reverse=True)[:AT_ONCE]),
            "weights": WEIGHTS * sum(held),
            "hidden states": sum(
                4.0 * (m.n_layers + 1) * PROBED_TOKENS * m.d_model
                for m in (run.config.model for run in runs if run.run_id in probed)
            ),
        },
    )


def over_limit(
    sweeps: Iterable[Sweep],
    project: Project,
    results: Results,
    kept: Mapping[str, Sequence[int]] = {},
    probed: Collection[str] = (),
) -> str:
    """Returns how the runs still to train exceed the project's limits; empty if they do not.

    A run in several ``sweeps`` counts once; ``kept`` and ``probed`` are those of :func:`budget`.
    """
    sweeps = list(sweeps)
    every = [run for sweep in sweeps for run in sweep.runs]
    todo = {run.run_id: run for run in every if not _done(run, results, kept)}
    device, per_run = device_of(project.device, project), project.devices_per_run
    total = budget(list(todo.values()), device, kept, probed, per_run)
    unit = "CPU" if device is CPU else "GPU"
    hours = {
        sweep.study.study: sum(total.seconds_by_run.get(r.run_id, 0) for r in sweep.runs) / 3600
        for sweep in sweeps
    }
    disk = {name: held / 1e9 for name, held in total.disk.items()}
    problems, allowing = [], []
    for key, what, size, parts in (
        (f"{unit.lower()}_hours", f"{unit}-hours", total.hours, hours),
        ("disk_gb", "GB of disk", sum(disk.values()), disk),
    ):
        if size > (limit := getattr(project.limits, key)):
            listed = ", ".join(f"{name} {x:,.3g}" for name, x in parts.items() if x > 0)
            problems.append(f"{size:,.3g} {what} ({listed}), more than limits.{key} = {limit:g}")
            allowing.append(f"{key}: {_round_up(size):g}")
    if not problems:
        return ""
    return (
        f"the {counted(total.runs, 'run')} still to train at tier {project.tier} would take, by "
        f"estimate, about {'; and '.join(problems)}. Choose fewer studies, a smaller tier or fewer "
        "runs (moelaws grid and moelaws plan show what they cost), or raise limits in "
        f"config/config.yaml; to allow it for one call: --config 'limits={{{', '.join(allowing)}}}'"
    )


def _done(run: Run, results: Results, kept: Collection[str]) -> bool:
    """Tells whether a call of the workflow has nothing to train for ``run``."""
    if run.run_id in kept and not results.kept(run.run_id).exists():
        return False
    again = results.lacked_memory(run.run_id).exists()  # each call tries such a run again
    return results.summary(run.run_id).exists() and not again


def _text(runs: Iterable[Run]) -> float:
    """Returns the bytes of the tokenised texts: of each, as much as its longest run reads once."""
    longest: dict[str, float] = {}
    for run in runs:
        corpus = run.config.corpus
        width = 2 if corpus.vocab_size <= 1 << 16 else 4
        read = width * run.config.tokens / run.config.max_epochs / (1 - corpus.validation)
        longest[corpus.corpus_id] = max(read, longest.get(corpus.corpus_id, 0.0))
    return sum(longest.values())


def _round_up(value: float) -> float:
    """Returns a limit of two digits that is 5 % or more above ``value``."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(1.05 * value / step) * step
