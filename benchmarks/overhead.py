"""The workflow's overhead while models are trained, and its peak memory.

Runs a command and watches its processes. Overhead is 1 - (sum of the training processes' time) /
(cores * wall time from the first one's start to the last one's end). Prints one JSON object.

    python benchmarks/overhead.py snakemake --cores all
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import psutil

INTERVAL = 0.05  # seconds between looks


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    began = time.time()
    process = subprocess.Popen(sys.argv[1:])
    root = psutil.Process(process.pid)
    seen: dict[int, tuple[float, float]] = {}  # process -> start, last seen
    peak = 0
    while process.poll() is None:
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            break
        memory = 0
        for child in family:
            try:
                memory += child.memory_info().rss
                words = child.cmdline()
                trains = len(words) > 2 and words[1].endswith("/moelaws") and words[2] == "train"
                # A trainer that asks git for the commit is, for an instant, two of its kind.
                if trains and child.ppid() not in seen:
                    seen[child.pid] = (child.create_time(), time.time())
            except psutil.Error:
                continue
        peak = max(peak, memory)
        time.sleep(INTERVAL)
    cores = os.cpu_count() or 1
    spans = list(seen.values())
    phase = max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0.0
    busy = sum(end - start for start, end in spans)
    figures = {
        "cores": cores,
        "seconds": round(time.time() - began, 1),
        "training_phase_seconds": round(phase, 1),
        "training_processes": len(spans),
        "training_processes_seconds": round(busy, 1),
        "overhead": round(1 - busy / (cores * phase), 4) if phase else None,
        "peak_memory_megabytes": round(peak / 1e6),
    }
    print(json.dumps(figures, indent=1))
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
