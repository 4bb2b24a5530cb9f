"""(e) Small runs side by side on one device, a process each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gpu.parts import Item, Setting
from speed.step import configuration, trainer_of

COUNTS, WITH_MPS = (1, 8, 4, 2), (8, 4)
MPS = "nvidia-cuda-mps-control"
# The smallest size of the tier node of the study sparsity, and a batch of its smallest budget.
MODEL = {"d_model": 128, "n_layers": 4, "n_heads": 2, "context": 1024, "vocab_size": 16384}
SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 1, "context": 16, "vocab_size": 300}
SECONDS, WARM = 6.0, 5  # of the measurement; steps before it
MOST_SECONDS = 150


def items(setting: Setting) -> dict[str, Item]:
    """A measurement for each number of runs, the last ones with NVIDIA's Multi-Process Service."""
    counts = COUNTS[:1] if setting.small else COUNTS
    named = {f"{count} at once": partial(side_by_side, setting, count) for count in counts}
    if not setting.small:
        named |= {f"{count} with MPS": partial(with_mps, setting, count) for count in WITH_MPS}
    return named


def with_mps(setting: Setting, count: int) -> dict[str, Any]:
    """Returns ``side_by_side`` under a service of its own, or why there is none."""
    if shutil.which(MPS) is None:
        return {"not_measured": f"{MPS} is not installed"}
    with tempfile.TemporaryDirectory() as folder:
        names = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")
        service = {**os.environ, **dict.fromkeys(names, folder)}
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}  # it stays behind
        done = subprocess.run([MPS, "-d"], env=service, timeout=20, **nowhere)
        if done.returncode:
            return {"not_measured": f"{MPS} ended with {done.returncode}"}
        try:
            return side_by_side(setting, count, dict.fromkeys(names, folder))
        finally:
            subprocess.run([MPS], input="quit\n", env=service, text=True, timeout=20)


def side_by_side(
    setting: Setting, count: int, variables: dict[str, str] | None = None
) -> dict[str, Any]:
    """Returns the tokens/s of ``count`` processes that train at the same time, and their sum.

    All begin to count when the last of them is warm.
    """
    seconds = 0.2 if setting.small else SECONDS
    paths = os.pathsep.join(path for path in sys.path if path)
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "gpu.packing", folder, setting.device]
        words += [str(setting.small), str(seconds)]
        processes = [
            subprocess.Popen(
                [*words, str(i)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": paths, **(variables or {})},
            )
            for i in range(count)
        ]  # fmt: skip
        try:
            until = time.monotonic() + MOST_SECONDS
            while len(list(Path(folder).glob("ready-*"))) < count:
                if any(process.poll() is not None for process in processes):
                    break  # what it said is read below
                if time.monotonic() > until:
                    raise RuntimeError(f"{count} runs were not all ready after {MOST_SECONDS} s")
                time.sleep(0.05)
            (Path(folder) / "go").touch()
            said = [process.communicate(timeout=MOST_SECONDS) for process in processes]
        finally:
            for process in processes:
                process.kill()
    for process, (_, errors) in zip(processes, said, strict=True):
        if process.returncode:
            raise RuntimeError(f"a run ended with {process.returncode}: {errors[-800:]}")
    runs = [json.loads(out) for out, _ in said]
    return {
        "runs": runs,
        "tokens_per_second": sum(run["tokens"] / run["seconds"] for run in runs),
        "peak_bytes": sum(run["peak_bytes"] for run in runs),
    }


def _child(folder: Path, device: str, small: bool, seconds: float, number: int) -> dict[str, Any]:
    """Trains until ``seconds`` after the sign to begin; returns the tokens of that time."""
    torch.set_num_threads(1)
    setting = Setting(device, folder, small)
    model = SMALL if small else MODEL
    ffn = {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": model["d_model"]}
    config = configuration(ffn, model, 2 if small else 72, "fp32" if device == "cpu" else "bf16")
    trainer = trainer_of(config, device=device)
    for _ in range(WARM):
        trainer.train_step()
    trainer.history.settle()
    setting.synchronize()
    (folder / f"ready-{number}").touch()
    while not (folder / "go").exists():
        time.sleep(0.001)
    began, first = time.perf_counter(), trainer.step
    while time.perf_counter() < began + seconds:
        for _ in range(5):
            trainer.train_step()
        trainer.history.settle()  # the host must not run far ahead of the clock
    spent = time.perf_counter() - began
    tokens = (trainer.step - first) * config.batch * config.model.context
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    return {"tokens": tokens, "seconds": spent, "peak_bytes": peak}


if __name__ == "__main__":
    where, kind, is_small, length, which = sys.argv[1:]
    print(json.dumps(_child(Path(where), kind, is_small == "True", float(length), int(which))))
