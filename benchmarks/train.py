"""The speed of training, each number a ratio within one run. docs/speed.md says what is measured.

python benchmarks/train.py --json results/speed.json
python benchmarks/train.py --parts experts loop --seconds 20
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded

import torch

from moelaws.cli.common import table_text
from moelaws.files.atomic import write_json
from moelaws.records.memory import keep_freed_memory
from moelaws.records.provenance import collect
from speed.layer import measure_experts, measure_loop
from speed.start import measure_start
from speed.step import configuration, measure_step

TARGETS = {
    "experts": "at least 0.45 of torch.mm",
    "loop": "at least 5 times the loop",
    "step": "at least 0.80 of the dense model",
    "start": "under 4 s, under 0.5 s besides torch's imports",
}
LAYER = {"T": 2048, "K": 2}
WIDTHS, EXPERTS = ((64, 32), (128, 64), (256, 256)), (4, 16, 64)
MODEL = {"n_layers": 4, "d_model": 128, "n_heads": 4, "context": 128, "vocab_size": 1024}
FFN = {"n_experts": 8, "top_k": 2, "d_expert": 128}
BATCH = 8


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"some of {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=10.0, help="for each comparison")
    parser.add_argument("--processes", type=int, default=5, help="fresh ones, for the start")
    args = parser.parse_args(words)
    torch.set_num_threads(1)
    keep_freed_memory()
    numbers: dict[str, Any] = {"machine": machine()}
    cpu = numbers["machine"]["cpu"]
    print(f"{cpu}, {os.cpu_count()} cores, torch {torch.__version__}, one thread")
    for part in args.parts:
        measure, show = PARTS[part]
        numbers[part] = measure(args)
        show(numbers[part])
        sys.stdout.flush()
    numbers["machine"]["load_at_the_end"] = os.getloadavg()[0]
    if args.json:
        write_json(args.json, numbers)


def machine() -> dict[str, Any]:
    about = {key: value for key, value in collect().items() if key not in ("host", "job")}
    return {**about, "threads": 1, "python": platform.python_version(), "load": os.getloadavg()[0]}


def experts(args: argparse.Namespace) -> dict[str, Any]:
    return measure_experts(WIDTHS, EXPERTS, **LAYER, seconds=args.seconds)


def show_experts(numbers: dict[str, Any]) -> None:
    rows = [
        (r["d_model"], r["d_expert"], r["n_experts"], round(r["load_cv"], 2),
         round(r["mm_gflops"], 1), round(1e3 * r["layer_seconds"], 2),
         round(r["share"]["best"], 3), round(r["share"]["median"], 3))
        for r in numbers["rows"]
    ]  # fmt: skip
    heads = ("d", "d_expert", "E", "load CV", "mm GFLOP/s", "layer ms", "share", "(median)")
    title = f"\nExperts, forward and backward, as a share of torch.mm: {numbers['best']:.3f}"
    print(table_text(heads, rows, f"{title} geometric mean ({TARGETS['experts']})"))


def loop(args: argparse.Namespace) -> dict[str, Any]:
    return measure_loop(WIDTHS, EXPERTS[-1], **LAYER, seconds=args.seconds)


def show_loop(numbers: dict[str, Any]) -> None:
    rows = [
        (r["d_model"], r["d_expert"],
         *(round(r[kind][of], 2) for kind in ("stacked", "separate") for of in ("best", "median")))
        for r in numbers["rows"]
    ]  # fmt: skip
    heads = ("d", "d_expert", "stacked weights", "(median)", "separate weights", "(median)")
    title = f"\nTimes the speed of a loop over {numbers['n_experts']} experts: "
    print(table_text(heads, rows, f"{title}{numbers['stacked_best']:.2f} ({TARGETS['loop']})"))


def step(args: argparse.Namespace) -> dict[str, Any]:
    return measure_step(MODEL, FFN, BATCH, args.seconds)


def show_step(numbers: dict[str, Any]) -> None:
    rows = [
        (kind, *(round(numbers[f"{kind}_{of}"] * scale, 1) for of, scale in
                 (("seconds", 1e3), ("tokens_per_second", 1), ("gflops", 1))))
        for kind in ("moe", "dense")
    ]  # fmt: skip
    title = f"\nWhole step, as a share of the dense model's speed: {numbers['share']['best']:.3f}"
    median = f"(median {numbers['share']['median']:.3f}; {TARGETS['step']})"
    print(table_text(("model", "ms", "tokens/s", "GFLOP/s (6N)"), rows, f"{title} {median}"))


def start(args: argparse.Namespace) -> dict[str, Any]:
    config = configuration({"kind": "moe", **FFN}, MODEL, BATCH)
    return measure_start(config, args.processes)


def show_start(numbers: dict[str, Any]) -> None:
    rows = [(part.replace("_", " "), round(s, 3)) for part, s in numbers["parts"].items()]
    title = (
        f"\nProcess start to first step: {numbers['seconds']:.2f} s, "
        f"{numbers['besides_torch']:.2f} s of them besides torch's imports"
    )
    print(table_text(("part", "s"), rows, f"{title} ({TARGETS['start']})"))


Part = tuple[Callable[[argparse.Namespace], dict[str, Any]], Callable[[dict[str, Any]], None]]
PARTS: dict[str, Part] = {
    "experts": (experts, show_experts),
    "loop": (loop, show_loop),
    "step": (step, show_step),
    "start": (start, show_start),
}

if __name__ == "__main__":
    main()
