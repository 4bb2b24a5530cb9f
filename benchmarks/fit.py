"""The speed of fits, beside what it is to be. docs/fitting.md has the numbers.

Each part runs in a process of its own, so that its peak of memory is its own, on as many threads
as there are cores. SciPy's loop runs on one thread, in the process and on the table of the fit that
it is compared with.

python benchmarks/fit.py --json results/fit_speed.json
python benchmarks/fit.py --parts chinchilla commands
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is loaded

import argparse
import multiprocessing
import operator
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from moelaws.cli.common import table_text
from moelaws.files.atomic import write_json
from moelaws.records.memory import keep_freed_memory
from moelaws.records.provenance import collect
from speed.commands import measure_commands
from speed.fits import (
    measure_allocation,
    measure_bootstrap,
    measure_chinchilla,
    measure_sparsity,
)

MB = {"peak_mb": ("at_most", 2000.0)}
CERTIFIED = {"certified": ("is", True)}
# part -> number -> what it is to be
TARGETS: dict[str, dict[str, tuple[str, float]]] = {
    "sparsity": {
        "seconds": ("at_most", 30.0),  # on 2 cores
        "ratio": ("at_least", 500.0),
        "same_on_one_thread": ("is", True),
        "objective_excess": ("at_most", 1e-9),  # two ends at one minimum differ by rounding
        **CERTIFIED,
        **MB,
    },
    "allocation": {"seconds": ("at_most", 60.0), **CERTIFIED, **MB},
    "chinchilla": {"seconds": ("at_most", 1.0), **CERTIFIED, **MB},
    "bootstrap": {"seconds": ("at_most", 20.0), **MB},
    "commands": {
        **dict.fromkeys(("help", "help_plan"), ("at_most", 0.7)),
        **dict.fromkeys(("eval", "eval_fit", "laws", "laws_one"), ("at_most", 0.5)),
        "advise": ("at_most", 2.0),
        "advise_fit": ("at_most", 30.0),
    },
}
HOLDS: dict[str, Callable[[float, float], bool]] = {
    "at_most": operator.le,
    "at_least": operator.ge,
    "is": operator.eq,
}
PARTS = tuple(TARGETS)
FEW = 600  # starts, for a trial: enough that pruning is met with


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"some of {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--scipy-starts", type=int, default=2000, metavar="N",
                        help="starts of SciPy to compare objectives with")  # fmt: skip
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="threads of the engine (default: all cores)")  # fmt: skip
    parser.add_argument("--quick", action="store_true",
                        help="a trial with a few starts: nothing is judged")  # fmt: skip
    args = parser.parse_args(words)
    if args.scipy_starts < 1:
        parser.error("--scipy-starts must be at least 1")
    if args.threads < 1:
        parser.error("--threads must be at least 1")
    about = machine() | {"threads": args.threads}
    numbers: dict[str, Any] = {"machine": about, "quick": args.quick}
    print(
        f"{about['cpu']}, {about['cores']} cores, {args.threads} threads; load {about['load']:.2f}",
        flush=True,
    )
    for part in args.parts:
        load = os.getloadavg()[0]
        numbers[part] = judged(in_own_process(part, args), TARGETS[part], args.quick)
        numbers[part]["load"] = {"before": load, "after": os.getloadavg()[0]}
        show(part, numbers[part])
        sys.stdout.flush()
    if args.json:
        write_json(args.json, numbers)


def machine() -> dict[str, Any]:
    about = {key: value for key, value in collect().items() if key not in ("host", "job")}
    about["packages"] |= {name: version(name) for name in ("numpy", "scipy", "pandas")}
    return {**about, "load": os.getloadavg()[0]}


def in_own_process(part: str, args: argparse.Namespace) -> dict[str, Any]:
    sample, threads = FEW if args.quick else None, args.threads
    calls: dict[str, tuple[Any, ...]] = {
        "sparsity": (measure_sparsity, sample, 4 if args.quick else args.scipy_starts, threads),
        "allocation": (measure_allocation, sample, threads),
        "chinchilla": (measure_chinchilla, sample, threads),
        "bootstrap": (measure_bootstrap, 20 if args.quick else 1000, threads),
        "commands": (measure_commands, 1 if args.quick else 5),
    }
    function, *arguments = calls[part]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=keep_freed_memory) as pool:  # as a fit does
        numbers: dict[str, Any] = pool.submit(function, *arguments).result()
    return numbers


def judged(
    numbers: dict[str, Any], targets: dict[str, tuple[str, float]], quick: bool
) -> dict[str, Any]:
    """The numbers with their targets beside them; None where they are not to be judged."""
    return numbers | {
        name: {
            "value": numbers[name],
            bound: limit,
            "met": None if quick else bool(HOLDS[bound](numbers[name], limit)),
        }
        for name, (bound, limit) in targets.items()
    }


def show(part: str, numbers: dict[str, Any]) -> None:
    words = {True: "met", False: "MISSED", None: "not judged"}
    rows = []
    for name, entry in numbers.items():
        if isinstance(entry, dict) and "met" in entry:
            bound = next(bound for bound in HOLDS if bound in entry)
            target = f"{bound.replace('_', ' ')} {entry[bound]}"
            rows.append((name, entry["value"], target, words[entry["met"]]))
        elif not isinstance(entry, dict):
            rows.append((name, entry, "", ""))
    for name, entry in numbers.get("scipy", {}).items():
        rows += [(f"SciPy, {name.replace('_', ' ')}: {k}", v, "", "") for k, v in entry.items()]
    print(table_text((part, "measured", "target", ""), rows, ""))


if __name__ == "__main__":
    main()
