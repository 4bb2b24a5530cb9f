"""(f) Some steps of each size of the study sparsity at the tier gpu, and the hours of its runs."""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from functools import partial
from typing import Any

import torch

from gpu.parts import REPOSITORY, Item, Setting
from moelaws.accounting.cost import H100, estimate
from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.model.backends import choose_backend
from moelaws.spec.corpus import Text
from moelaws.spec.model import Model, MoE
from moelaws.spec.project import load_study
from moelaws.spec.run import RunConfig
from speed.step import trainer_of

SECONDS, WARM = 3.0, 5  # that are timed, and steps before them


def items(setting: Setting) -> dict[str, Item]:
    """A measurement for each model of the tier."""
    models = runs_by_model("demo" if setting.small else "gpu")
    # A budget's batch grows with it: the smallest budget's is measured.
    sizes = [(_name(model), partial(hours, setting, runs)) for model, runs in models.items()]
    if setting.small:
        return dict(sizes[:1])
    # Every fifth first, so that a call that is short of time has some of all sizes.
    return dict(size for start in range(5) for size in sizes[start::5])


def runs_by_model(tier: str) -> dict[Model, list[RunConfig]]:
    """Returns the runs of the study sparsity at ``tier`` by model; their text plays no part."""
    grid = load_study("sparsity", REPOSITORY).grids[tier]
    text = CorpusChoice(source=Text(digest="0" * 64), validation=0.01)
    models: dict[Model, list[RunConfig]] = defaultdict(list)
    for run in expand(grid, text, f"sparsity, {tier}"):
        models[run.config.model].append(run.config)
    order = sorted(models, key=lambda model: (model.n_layers * model.d_model**2, _experts(model)))
    return {model: sorted(models[model], key=lambda c: (c.batch, c.steps)) for model in order}


def hours(setting: Setting, runs: list[RunConfig]) -> dict[str, Any]:
    """Returns the speed of the first of ``runs``, which share a model, and by it the hours of all.

    The tokens are random, by Zipf's law. The hours are of training steps: neither start nor
    evaluation nor checkpoints are in them.
    """
    config, device = runs[0], setting.device
    seconds = 0.0 if setting.small else SECONDS
    backend, reason = choose_backend("auto", config.model, device, config.precision)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    trainer = trainer_of(config, backend, device)
    try:
        for _ in range(1 if setting.small else WARM):
            trainer.train_step()
        trainer.history.settle()
        began, timed = time.perf_counter(), 0
        while not timed or time.perf_counter() < began + seconds:
            for _ in range(3):
                trainer.train_step()
            timed += 3
            trainer.history.settle()  # waits for the device
        seconds = (time.perf_counter() - began) / timed
        micro_batch = trainer.micro_batch
    finally:
        del trainer
        gc.collect()
    tokens = config.batch * config.model.context
    total = sum(run.tokens for run in runs)
    row = {
        "n_layers": config.model.n_layers, "d_model": config.model.d_model,
        "n_experts": _experts(config.model), "batch": config.batch, "micro_batch": micro_batch,
        "backend": reason, "steps": timed, "seconds_per_step": seconds,
        "tokens_per_second": tokens / seconds, "runs": len(runs),
        "hours": total * seconds / tokens / 3600,
        "hours_expected": sum(estimate(run, H100).seconds for run in runs) / 3600,
    }  # fmt: skip
    if device == "cuda":
        row["peak_bytes"] = torch.cuda.max_memory_allocated()
    if setting.peak:
        flops = train_flops_per_token(config.model, "six_n") * tokens
        row["utilisation"] = flops / seconds / setting.peak
    return row


def _experts(model: Model) -> int:
    return model.ffn.n_experts if isinstance(model.ffn, MoE) else 1


def _name(model: Model) -> str:
    return f"{model.n_layers} layers, d={model.d_model}, E={_experts(model)}"
