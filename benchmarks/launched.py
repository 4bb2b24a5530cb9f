"""What launchers save: short commands that load their libraries, and the same in a launcher.

They take turns, one at a time. `train` trains a small model for ten steps, and `fit` fits a law.
Prints one JSON object: the median seconds of each, and their ratio.

    python benchmarks/launched.py --turns 10
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from moelaws.launcher.client import FOLDER
from moelaws.records.files import write_text
from moelaws.spec.run import RunConfig
from moelaws.workflow.launchers import Launchers
from run_list import CONFIG
from speed.start import made_up_corpus


def seconds(words: list[str], launchers: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "moelaws", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", FOLDER: launchers},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    turns = parser.parse_args().turns
    launchers = Launchers()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        corpus = made_up_corpus(root, 512)
        changes = {"corpus": corpus, "steps": 10, "evaluation": {"sequences": 8}}
        write_text(root / "run.json", RunConfig.model_validate(CONFIG | changes).canonical_json())
        table = root / "table.parquet"
        simulate = ["simulate", "--study", "sparsity", "--out", str(table)]
        seconds(simulate, "")
        launchers.begin({"train": 100, "fit": 100})
        address = os.environ[FOLDER]
        while len(os.listdir(address)) < 2:
            time.sleep(0.1)
        took: dict[str, dict[str, list[float]]] = {}
        for turn in range(turns):
            for kind, folder in (("alone", ""), ("launched", address)):
                out = str(root / f"{kind}{turn}")
                train = ["train", str(root / "run.json"), "--corpus", str(root / "prepared")]
                fit = ["fit", str(table), "--law", "chinchilla", "--map", "N=N_active"]
                for name, words in (("train", [*train, "--out", out]), ("fit", fit)):
                    took.setdefault(name, {}).setdefault(kind, []).append(seconds(words, folder))
        launchers.end()
    medians = {
        name: {kind: round(statistics.median(times), 3) for kind, times in kinds.items()}
        for name, kinds in took.items()
    }
    for times in medians.values():
        times["ratio"] = round(times["alone"] / times["launched"], 2)
    print(json.dumps(medians, indent=1))


if __name__ == "__main__":
    main()
