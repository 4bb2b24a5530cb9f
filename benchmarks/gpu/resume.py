"""(c) A run that is killed and started again, or leaves a trunk, against the same run alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from gpu.parts import Item, Setting
from moelaws.files.layout import Results
from moelaws.model.backends import choose_backend
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.training.plan import TrainingOptions
from moelaws.training.run import train
from speed.start import made_up_corpus
from speed.step import configuration

MODEL = {"d_model": 128, "n_layers": 4, "n_heads": 2, "context": 128, "vocab_size": 512}
SMALL = {"d_model": 32, "n_layers": 1, "n_heads": 1, "context": 32, "vocab_size": 300}
MOST_SECONDS = 300  # a shared CPU may be slow


def items(setting: Setting) -> dict[str, Item]:
    """A measurement for each back end, and one of a trunk."""
    backends = ("torch",) if setting.small else ("torch", "megablocks")
    killed = {backend: partial(killed_and_resumed, setting, backend) for backend in backends}
    return {**killed, "trunk": partial(from_a_trunk, setting)}


def from_a_trunk(setting: Setting) -> dict[str, Any]:
    """Returns how far the losses of a run that left a trunk are from those of the run alone."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        config, prepared = _configuration(setting, root), root / "prepared"
        schedule = {"kind": "wsd", "warmup_steps": 10, "decay": 0.2}
        config = RunConfig.model_validate({**config.model_dump(), "schedule": schedule})
        results = {name: Results(root / name) for name in ("shared", "alone", "again")}
        options = TrainingOptions(device=setting.device, lengths=(config.steps // 2, config.steps))
        shorter = train(config.of_length(config.steps // 2), results["shared"], prepared, options)
        longer = train(config, results["shared"], prepared, options)
        for name in ("alone", "again"):
            train(config, results[name], prepared, TrainingOptions(device=setting.device))
        losses = {name: _losses(each, config) for name, each in results.items()}
    return {
        "shared_steps": longer.shared_steps,
        "of_steps": longer.steps,
        "killed_is_bit_for_bit": losses["shared"] == losses["alone"],
        "largest_difference": _largest(losses["shared"], losses["alone"]),
        "largest_difference_of_two_alone": _largest(losses["again"], losses["alone"]),
        "loss": {"shorter": shorter.loss, "longer": longer.loss},
    }


def killed_and_resumed(setting: Setting, backend: str) -> dict[str, Any]:
    """Returns how far the losses of a killed run are from those of one that was left alone.

    A GPU may add in another order each time: two runs that were left alone tell how far apart.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        config = _configuration(setting, root)
        try:
            choose_backend(backend, config.model, setting.device, config.precision)
        except UserError as error:
            return {"not_measured": str(error)}
        results = {name: Results(root / name) for name in ("killed", "alone", "again")}
        _kill(setting, config, backend, root)
        options = TrainingOptions(device=setting.device, backend=backend)
        lines: list[str] = []
        final = {}
        for name, each in results.items():
            summary = train(config, each, root / "prepared", options, log=lines.append)
            assert summary.status == "completed", summary.message
            final[name] = summary.loss
        resumed = [line for line in lines if "resumed at step" in line]
        if len(resumed) != 1:
            raise RuntimeError(f"the killed run did not go on from its checkpoint: {lines}")
        losses = {name: _losses(each, config) for name, each in results.items()}
    return {
        "resumed": resumed[0].partition(": ")[2],
        "killed_is_bit_for_bit": losses["killed"] == losses["alone"]
        and final["killed"] == final["alone"],
        "two_alone_are_bit_for_bit": losses["again"] == losses["alone"],
        "largest_difference": _largest(losses["killed"], losses["alone"]),
        "largest_difference_of_two_alone": _largest(losses["again"], losses["alone"]),
        "loss": final,
    }


def _configuration(setting: Setting, root: Path) -> RunConfig:
    """Returns a run on a corpus of made-up words, prepared below ``root``."""
    model = SMALL if setting.small else MODEL
    ffn = {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": model["d_model"]}
    precision = "bf16" if setting.device == "cuda" else "fp32"
    config = configuration(ffn, model, 8, precision)
    corpus = made_up_corpus(root, model["vocab_size"])
    changes = {"corpus": corpus, "steps": 40 if setting.small else 100, "max_epochs": 100,
               "evaluation": {"sequences": 32}}  # fmt: skip
    return RunConfig.model_validate({**config.model_dump(), **changes})


def _kill(setting: Setting, config: RunConfig, backend: str, root: Path) -> None:
    """Trains in a process that saves after each step, and is killed in the middle."""
    paths = os.pathsep.join(path for path in sys.path if path)
    words = {"config": config.model_dump(mode="json"), "root": str(root), "backend": backend,
             "device": setting.device}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "gpu.resume"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    try:
        _, said = process.communicate(json.dumps(words), timeout=MOST_SECONDS)
    finally:
        process.kill()
    if process.returncode != -9:
        raise RuntimeError(
            f"the run ended with {process.returncode} before it was killed: {said[-800:]}"
        )


def _child() -> None:
    """Kills itself by SIGKILL right after the checkpoint of a step in the middle of the run."""
    import signal

    from moelaws.training import checkpoint

    words = json.load(sys.stdin)
    config = RunConfig.model_validate(words["config"])
    save, saved = checkpoint.save, []

    def save_and_die(*content: Any) -> None:
        save(*content)
        saved.append(time.monotonic())
        if len(saved) == config.steps // 2:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoint.save = save_and_die
    options = TrainingOptions(words["device"], words["backend"], checkpoint_seconds=0.0)
    root = Path(words["root"])
    train(config, Results(root / "killed"), root / "prepared", options)


def _losses(results: Results, config: RunConfig) -> list[float]:
    path = results.run(config.run_id) / "history.parquet"
    return list(pq.read_table(path).column("loss").to_pylist())


def _largest(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


if __name__ == "__main__":
    _child()
