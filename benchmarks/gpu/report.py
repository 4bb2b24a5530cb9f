"""The section of docs/speed.md about GPUs, written from what the parts measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu.tables import NOT_MEASURED, TABLES

BEGIN, END = "<!-- gpu: written by make gpu-report -->", "<!-- gpu: end -->"
WHAT = {
    "tests": "**Tests** that can use a GPU",
    "accuracy": "**Accuracy**: the largest relative error of the output and of four gradients "
    "against a float64 loop over tokens",
    "resume": "**Kill and resume**: the training losses of a run that was killed by SIGKILL and "
    "started again, or that left a trunk, against those of the same run left alone",
    "speed": "**Steps and layers** in bf16 at d_expert = d and top-2 (4 layers, V = 16,384), on 32 "
    "sequences of 1,024 tokens; MFU is 6 N_active tokens/s over the device's dense bf16 peak",
    "profile": "**One step by kernel**, in ms, at d_expert = d, E = 8 and top-2 (d = 128: 4 layers "
    "and 72 sequences of 1,024 tokens, else 8 layers and 32; V = 16,384)",
    "packing": "**Small runs side by side** on one GPU, a process each (4 layers, d = 128, E = 8)",
    "tier": "**Tier gpu of the study sparsity**: some seconds of each size, and by them the hours "
    "of its runs",
}


def render(parts: dict[str, Any]) -> str:
    """Returns the section's Markdown; ``parts`` holds the content of each part's file by name."""
    lines: list[str] = []
    if parts:
        about = next(iter(parts.values()))["machine"]
        torch = about["packages"]["torch"]
        lines += [
            f"These numbers are from one {about['gpu']}, with torch {torch} (CUDA {about['cuda']}) "
            f"and moelaws at commit {str(about['commit'])[:12]}.",
            "",
        ]
    absent = [part for part in WHAT if part not in parts]
    if len(absent) == len(WHAT):
        lines += ["Nothing in this section is measured, for no GPU was at hand.", ""]
    for part, what in WHAT.items():
        if part in absent:
            lines += [f"- {what}: **{NOT_MEASURED}**."]
    for part, content in parts.items():
        left = content["left"]
        names = "; ".join(left) if len(left) < 5 else f"{len(left)} others"
        unfinished = f" Not measured yet: {names}." if left else ""
        lines += ["", f"{WHAT[part]}.{unfinished}", "", *TABLES[part](content["items"])]
    return "\n".join(lines).replace("\n\n\n", "\n\n").strip() + "\n"


def write(page: Path, parts: dict[str, Any]) -> None:
    """Puts the section in its place in ``page``.

    Raises:
        SystemExit: for numbers of a CPU or of small sizes, which say nothing of a GPU; or of
            several machines.
    """
    machines = [content["machine"] for content in parts.values()]
    if any(m["device"] != "cuda" or m["small"] for m in machines):
        raise SystemExit(
            "these numbers are not of a GPU at full size: docs/speed.md stays as it is"
        )
    if any(m != machines[0] for m in machines):
        raise SystemExit("the parts were measured by several machines or versions: measure again")
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{page} lacks the lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{render(parts)}\n{END}{after}", encoding="utf-8")
