"""How the workflow carries a sweep of 10,000 runs: dry run, no-op, memory, `moelaws grid`.

Works in a copy of the repository in a temporary folder. The no-op is measured on made-up summaries
(nothing is trained), which live and die with that folder. Prints one JSON object.

    python benchmarks/sweep_scale.py --runs 10000
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[1]
SUMMARY = {
    "status": "completed", "loss": 4.0, "loss_se": 0.02, "bits_per_byte": 2.5, "train_loss": 4.0,
    "steps": 1, "tokens": 1, "epochs": 0.1, "balance": None, "wall_seconds": 1.0,
    "tokens_per_second": 1.0, "peak_memory_bytes": 1,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_repository(root, runs)
        grid = measured(root, "moelaws", "grid", "sparsity")
        dry = measured(root, "snakemake", "--cores", "2", "-n", "--quiet", "--", "tables")
        listed = subprocess.run(
            [sys.executable, "-m", "moelaws", "grid", "sparsity", "--json"],
            cwd=root, capture_output=True, check=True,
        )  # fmt: skip
        pretend(root, [run["run_id"] for run in json.loads(listed.stdout)])
        table = measured(root, "snakemake", "--cores", "2", "--quiet", "--", "tables")
        noop = measured(root, "snakemake", "--cores", "2", "--quiet", "--", "tables")
    figures = {"grid": grid, "dry_run": dry, "table": table, "no_op": noop}
    print(json.dumps({"runs": runs, "cores": os.cpu_count(), **figures}, indent=1))


def copy_repository(root: Path, runs: int) -> None:
    """The repository with a grid of ``runs`` runs that differ in their seed."""
    for name in ("Snakefile", "workflow", "config", "profiles", "envs"):
        source = REPOSITORY / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, root / name)
    path = root / "config/studies/sparsity.yaml"
    study = yaml.safe_load(path.read_text())
    demo = study["grids"]["demo"]
    demo["sweeps"] = [{"axes": {"C": 1e11, "S": 0.5, "d_model": 16, "seed": list(range(runs))}}]
    path.write_text(yaml.safe_dump(study, sort_keys=False))


def pretend(root: Path, run_ids: list[str]) -> None:
    """Summaries of runs that never were, so that a call finds nothing to train."""
    corpora = root / "results/corpora"
    for run_id in run_ids:
        folder = root / "results/runs" / run_id
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps({"run_id": run_id, **SUMMARY}))
        (folder / "provenance.json").write_text('{"code": "none"}')
    # The runs' corpus, prepared in their stead.
    listed = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "--cores", "1", "--", "tables"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for word in listed.split():
        if word.startswith("results/corpora/") and word.endswith("meta.json"):
            meta = root / word
            meta.parent.mkdir(parents=True, exist_ok=True)
            meta.write_text("{}")
    assert corpora.exists()


def measured(root: Path, module: str, *words: str) -> dict[str, float]:
    """Seconds and peak memory (MB) of one call."""
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(errors.decode())
    assert isinstance(usage, resource.struct_rusage)
    seconds = round(time.perf_counter() - before, 2)
    return {"seconds": seconds, "megabytes": round(usage.ru_maxrss / 1024)}


if __name__ == "__main__":
    main()
