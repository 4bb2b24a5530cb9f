"""A copy of the repository with a small text and a small sweep, driven by real Snakemake."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import yaml

from repository import copy_repository

GRID = {
    "settings": {
        "context": 32, "vocab_size": 300, "n_layers": 1, "n_heads": 2, "top_k": 2, "G": 2,
        "tied_embeddings": True, "init_std": 0.1, "batch": 4, "warmup": 0.1,
        "evaluation_sequences": 32, "lr": 0.01,
    },
    "derive": {
        "n_experts": {"rule": "sparsity"},
        "d_expert": {"rule": "granularity"},
        "steps": {"rule": "compute", "convention": "sparsity", "min_steps": 5},
    },
    "sweeps": [{"axes": {"C": [2e8, 4e8], "S": [0, 0.5, 0.75], "d_model": [8, 12, 24]}}],
}  # fmt: skip


# Of the sparsity study's entries enough of each kind, for each is a process to start.
KEPT = {
    *("loss", "isoflop_total", "isoflop_active", "chinchilla"),
    *("optima", "sparsity_optima", "trends"),
    *("F1a", "F2b", "F3a", "F3b", "F4", "F6a", "F7", "F11", "T3"),
}


def only(study, kept):
    """The study's entries named in ``kept``, and the claims whose needs are."""

    def needs(entry):
        return {*entry.get("fits", ()), *entry.get("derived", ())}

    for kind in ("fits", "derived", "figures", "tables"):
        study[kind] = [e for e in study[kind] if e["name"] in kept]
        assert all(needs(entry) <= kept for entry in study[kind])
    study["claims"] = [c for c in study["claims"] if needs(c) | {c["figure"]} <= kept]
    study.pop("simulation")
    assert all(study[kind] for kind in ("fits", "derived", "figures", "tables", "claims"))
    return study


class Copy:
    """A copy of the repository, and what users do in one."""

    def __init__(self, root: Path):
        self.root = root

    @classmethod
    def of_repository(cls, root: Path):
        """The repository under test, with the small text and sweep."""
        copy_repository(root)
        # Real text that no test edits: one package of the standard library.
        shutil.copytree(Path(sysconfig.get_path("stdlib")) / "asyncio", root / "text")
        copy = cls(root)
        copy.edit("config/config.yaml", r"corpus: stdlib", 'corpus: ["text/*.py"]')
        copy.edit("config/config.yaml", r"power: auto", "power: 1")
        copy.edit("config/config.yaml", r"studies: \[sparsity, routing\]", "studies: [sparsity]")
        study = only(copy.study(), KEPT)
        study.pop("keep_weights")
        study["grids"] = {"demo": GRID}
        for fit in study["fits"]:
            fit["bootstrap"] = 5
            fit.pop("holdout", None)
            fit.pop("tiers", None)
            if fit["law"] == "sparsity.loss":
                fit["protocol"] = {"sample": 500}  # of the 437,400 starts of its grid
        for contest in study["contests"]:
            contest |= {"laws": ["sparsity.loss", "chinchilla", "wang.loss"], "bootstrap": 5}
            contest["mappings"].pop("granularity.loss")
            contest.pop("short")
            contest["splits"] = contest["splits"][:1]
        copy.write_study(study)
        return copy

    def study(self, name="sparsity"):
        return yaml.safe_load((self.root / f"config/studies/{name}.yaml").read_text())

    def write_study(self, study):
        path = self.root / f"config/studies/{study['study']}.yaml"
        path.write_text(yaml.safe_dump(study, sort_keys=False))

    def edit(self, file, pattern, replacement):
        path = self.root / file
        text, count = re.subn(pattern, replacement, path.read_text(), count=1)
        assert count == 1, f"{pattern} is not in {file}"
        path.write_text(text)

    @contextlib.contextmanager
    def edited(self, file, pattern, replacement):
        """The file changed for the block, its content and time put back after it."""
        path = self.root / file
        text, stat = path.read_text(), path.stat()
        self.edit(file, pattern, replacement)
        try:
            yield
        finally:
            path.write_text(text)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    @property
    def environment(self):
        return {**os.environ, "PYTHONPATH": str(self.root / "src")}

    def command(self, *words):
        """Arguments of a Snakemake call, for tests that start and kill it themselves."""
        return [sys.executable, "-m", "snakemake", "--cores", "2", *words]

    def snakemake(self, *words, check=True):
        done = subprocess.run(
            self.command(*words),
            cwd=self.root, env=self.environment, capture_output=True, text=True,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    def moelaws(self, *words):
        return subprocess.run(
            [sys.executable, "-m", "moelaws", *words],
            cwd=self.root, env=self.environment, capture_output=True, text=True,
        )  # fmt: skip

    def planned(self, *words):
        """Rule -> number of jobs that a call would run."""
        output = self.snakemake("-n", *words).stdout
        stats = re.search(r"Job stats:\njob +count\n[- ]+\n(.*?)\n\n", output + "\n\n", re.S)
        if stats is None:
            assert "Nothing to be done" in output
            return {}
        rows = dict(line.split() for line in stats[1].splitlines())
        return {rule: int(n) for rule, n in rows.items() if rule not in ("total", "all")}

    def summaries(self):
        return sorted((self.root / "results/runs").glob("*/summary.json"))
