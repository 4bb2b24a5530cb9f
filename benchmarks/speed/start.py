"""From the start of a process to its first optimizer step, and how much of that is torch's."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from moelaws.corpus.prepare import prepare
from moelaws.corpus.sources import Sources, resolve
from moelaws.files.atomic import write_text
from moelaws.spec.corpus import Corpus
from moelaws.spec.run import RunConfig

CHILD = Path(__file__).with_name("start_child.py")
DOCUMENTS, LINES, WORDS = 100, 40, 12


def measure_start(config: RunConfig, processes: int) -> dict[str, Any]:
    """Seconds of ``moelaws train`` up to its first step in fresh processes, of the fastest one.

    ``config`` is trained on a small corpus of made-up words with its vocabulary.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        corpus = made_up_corpus(root, config.model.vocab_size)
        changes = {"corpus": corpus, "steps": 10, "evaluation": {"sequences": 8}}
        config = RunConfig.model_validate({**config.model_dump(), **changes})
        path = root / "run.json"
        write_text(path, config.canonical_json())
        runs = [start(root, path, i) for i in range(processes)]
    best = min(runs, key=lambda run: run["total"])
    return {
        "processes": processes,
        "seconds": best["total"],
        "median_seconds": statistics.median(run["total"] for run in runs),
        "besides_torch": best["total"] - best["torch_imports"],
        "parts": {name: seconds for name, seconds in best.items() if name != "total"},
    }


def made_up_corpus(root: Path, vocab_size: int) -> Corpus:
    """Prepared in ``root / "prepared"``."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 9))) for _ in range(3000)]
    texts = root / "texts"
    for i in range(DOCUMENTS):
        lines = (" ".join(draw.choices(words, k=WORDS)) for _ in range(LINES))
        write_text(texts / f"{i:03}.txt", "\n".join(lines))
    sources = resolve("*.txt", texts)
    assert isinstance(sources, Sources)
    corpus = Corpus(source=sources.identity(), vocab_size=vocab_size, validation=0.2)
    prepare(corpus, sources, root / "prepared")
    return corpus


def start(root: Path, config: Path, turn: int) -> dict[str, float]:
    words = [str(config), "--corpus", str(root / "prepared"), "--out", str(root / f"run{turn}")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ASKED_FOR_AT": str(time.time())}
    done = subprocess.run(
        [sys.executable, CHILD, *words, "--device", "cpu"],
        cwd=root, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)
    parts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return parts
