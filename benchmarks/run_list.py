"""How long `moelaws runs` takes over 10,000 runs on record, as a multiple of reading their files.

The runs are made up, in a temporary folder: records of the size that a training leaves, ten seeds
of each configuration, one run in a hundred tagged. The calls take turns with a plain loop that
reads and parses the same files: other work on the machine slows all of them alike. `start` is the
command's help, which reads no run. Prints one JSON object.

    python benchmarks/run_list.py --runs 10000
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.spec.run import RunConfig
from speed.clock import take_turns

CONFIG: dict[str, Any] = {
    "model": {
        "n_layers": 2, "d_model": 32, "n_heads": 2, "n_kv": 2, "context": 128, "vocab_size": 512,
        "ffn": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 32},
    },
    "corpus": {"source": {"digest": "0" * 64}, "vocab_size": 512},
    "steps": 1000, "batch": 4, "balance_group": 4, "optimizer": {"lr": 3e-3},
}  # fmt: skip
SUMMARY = {
    "status": "completed", "loss_se": 0.06, "bits_per_byte": 2.4, "train_loss": 3.4,
    "steps": 1000, "tokens": 512_000, "epochs": 0.2, "wall_seconds": 19.5,
    "balance": {
        "cv": 0.05, "entropy": 0.99, "kl": 0.001, "overflow": 0.0, "unused": 0.2,
        "capacity_factor": 1.25, "never_used": 0,
    },
    "tokens_per_second": 40_878.9, "peak_memory_bytes": 436_015_104, "message": "",
}  # fmt: skip
PROVENANCE = {
    "started": "2026-01-01T00:00:00+00:00", "code": "0" * 16, "moelaws": "0.1.0",
    "commit": "0" * 40, "dirty": False, "python": "3.11.7",
    "packages": dict.fromkeys(("torch", "numpy", "tokenizers", "pyarrow", "pydantic"), "1.2.3"),
    "host": "node", "cpu": "a processor", "cores": 2, "system": "Linux", "job": "",
    "device": "cpu", "backend": "torch", "threads": 1,
    "corpus_files": dict.fromkeys(("tokenizer.json", "train.bin", "validation.bin"), "0" * 64),
    "resumed_from": [], "micro_batch": 4,
}  # fmt: skip
CALLS = {
    "list": ("runs",),
    "filter": ("runs", "--where", "L < 3.5 and E == 8"),
    "sort": ("query", "SELECT run_id, L, bits_per_byte FROM runs ORDER BY bits_per_byte"),
    "json": ("runs", "--json"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to measure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_runs(Results(root / "results"), arguments.runs)
        cpu: dict[str, list[float]] = {name: [] for name in ("plain", "start", *CALLS)}
        plain = ("-c", PLAIN)
        calls = {"plain": plain, "start": ("-m", "moelaws", "runs", "--help")}
        calls |= {name: ("-m", "moelaws", *words) for name, words in CALLS.items()}
        take_turns(
            {name: lambda n=name, w=words: cpu[n].append(seconds(root, *w))
             for name, words in calls.items()},
            arguments.seconds,
        )  # fmt: skip
    best = {name: min(times) for name, times in cpu.items()}
    figures = {"cpu_seconds": {name: round(s, 2) for name, s in best.items()}}
    figures["times_plain_reading"] = {n: round(best[n] / best["plain"], 2) for n in CALLS}
    print(json.dumps({"runs": arguments.runs, "cores": os.cpu_count(), **figures}, indent=1))


# What no listing can do without: each file of each run, read and parsed.
PLAIN = """
import json, os
for run in os.scandir("results/runs"):
    for file in os.scandir(run.path):
        with open(file.path, "rb") as opened:
            json.loads(opened.read())
"""


def make_runs(results: Results, n: int) -> None:
    """Writes ``n`` finished runs that were never trained."""
    for i in range(n):
        steps = {"steps": 1000 + i // 10}
        config = RunConfig.model_validate(CONFIG | steps | {"seed": i % 10})
        folder = results.run(config.run_id)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(config.canonical_json() + "\n")
        loss = 4.0 - i / n + i % 10 * 0.01
        write_json(folder / "summary.json", {"run_id": config.run_id, "loss": loss, **SUMMARY})
        write_json(folder / "provenance.json", PROVENANCE)
        if i % 100 == 0:
            write_json(folder / "notes.json", {"tags": {"checked": "yes"}, "note": ""})


def seconds(root: Path, *words: str) -> float:
    """CPU seconds, of user and system, of one call of Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=root, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
