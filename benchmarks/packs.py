"""What packs save on a cluster: short runs in a few Slurm jobs, and the same runs in a job each.

A Slurm of one node on this machine trains each, first in packs. It needs root and Debian's packages
slurm-wlm and munge. Prints one JSON object: jobs and seconds of each, and their ratios.

    python benchmarks/packs.py --runs 200
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY / "tests/slurm"), str(REPOSITORY / "tests")]
from one_node import lacking, one_node  # noqa: E402

from repository import copy_repository  # noqa: E402

# A run trains for about a quarter of a second.
SETTINGS = {
    "context": 32, "vocab_size": 300, "n_layers": 1, "n_heads": 1, "n_experts": 8, "top_k": 2,
    "d_expert": 16, "tied_embeddings": True, "batch": 4, "steps": 80, "lr": 0.01,
    "evaluation_sequences": 32, "max_epochs": 1000,
}  # fmt: skip
# No longer than on a real cluster, where a first look comes after 40 s by default.
SITE = {"cores": os.cpu_count(), "slurm-init-seconds-before-status-checks": 3}


def prepared(root: Path, runs: int) -> dict[str, str]:
    """Makes a copy of the repository with a study of so many runs, and their text."""
    copy_repository(root)
    (root / "config/config.yaml").write_text("studies: [short]\ncorpus: [src/moelaws/cli/*.py]\n")
    sweeps = [{"axes": {"d_model": 16, "seed": list(range(runs))}}]
    grids = {"demo": {"settings": SETTINGS, "sweeps": sweeps}}
    study = {"study": "short", "title": "Short runs", "grids": grids}
    (root / "config/studies/short.yaml").write_text(yaml.safe_dump(study))
    (root / "profiles/slurm/site.yaml").write_text(yaml.safe_dump(SITE))
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    call(root, environment, "--cores", "1", "--until", "prepare_corpus", "--", "runs")
    return environment


def call(root: Path, environment: dict[str, str], *words: str) -> None:
    snakemake = [sys.executable, "-m", "snakemake", *words]
    subprocess.run(snakemake, cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)


def measured(runs: int, minutes: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        environment = prepared(Path(folder), runs)
        with one_node() as slurm:
            slurm |= {"PYTHONPATH": environment["PYTHONPATH"]}
            began = time.perf_counter()
            packs = ("--config", f"pack_minutes={minutes}")
            call(Path(folder), slurm, "--profile", "slurm", *packs, "--", "runs")
            took = time.perf_counter() - began
            listed = subprocess.run(
                ["scontrol", "show", "job", "-o"], env=slurm, capture_output=True, text=True
            )
    return {"jobs": listed.stdout.count("JobId="), "seconds": round(took, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    if why := lacking():
        raise SystemExit(why)
    result = {"packed": measured(runs, 30), "a job each": measured(runs, 0)}
    result["ratio"] = {
        key: round(result["a job each"][key] / result["packed"][key], 1)
        for key in ("jobs", "seconds")
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
