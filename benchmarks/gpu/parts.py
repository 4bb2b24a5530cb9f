"""A part is a list of named measurements that goes on where it was stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from moelaws.files.atomic import read_json, write_json
from moelaws.records.provenance import collect

REPOSITORY = Path(__file__).parents[2]

# Dense bf16 FLOP/s without sparsity, from the makers' data sheets; the first that occurs in a
# device's name.
PEAKS = {"H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "H200": 989e12, "A100": 312e12}

Item = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Setting:
    """Where and at what size is measured. ``small`` tries everything in seconds on any machine: its
    numbers say nothing."""

    device: str  # cuda or cpu
    out: Path
    small: bool = False
    carried: Path | None = None  # where `make gpu-wheels` noted the commit of this code
    seconds: float = 2.0  # for each comparison

    @property
    def peak(self) -> float | None:
        """bf16 FLOP/s that utilisation is a share of; None for a device that is not known."""
        if self.device != "cuda":
            return None
        name = torch.cuda.get_device_name()
        return next((peak for known, peak in PEAKS.items() if known in name), None)

    def synchronize(self) -> None:
        """Waits for the device to have done what it was handed."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def machine(self) -> dict[str, Any]:
        """Returns what must be the same for two measurements to stand side by side."""
        about = collect()
        gpu = torch.cuda.get_device_name() if self.device == "cuda" else None
        kept = ("code", "commit", "python", "packages")
        machine = {"device": self.device, "gpu": gpu, "cuda": torch.version.cuda,
                   "small": self.small, "peak_flops": self.peak,
                   **{key: about[key] for key in kept}}  # fmt: skip
        note = self.carried / "commit.json" if self.carried else None
        if note and note.exists():  # a copy has no .git, or that of an older commit
            noted = json.loads(note.read_text())
            machine["commit"] = noted["commit"] if noted["code"] == about["code"] else None
        return machine


def measure(
    part: str,
    items: Mapping[str, Item],
    setting: Setting,
    until: float,
    skipped: Sequence[str] = (),
) -> bool:
    """Measures what ``OUT/all.json`` lacks of ``part``; returns whether all ``items`` are there.

    Each measurement is written when it is there. Those ``skipped`` are left for later, and none
    is begun after ``until`` by the monotonic clock: the next call goes on. One that fails is noted
    with its error and tried again by the next call. Measurements of other code or of another device
    are dropped; the host's processor may be another one.
    """
    path, machine = setting.out / "all.json", setting.machine()
    parts = read_json(path) if path.exists() else {}
    done: dict[str, Any] = {}
    if part in parts and parts[part]["machine"] == machine:
        done = {name: it for name, it in parts[part]["items"].items() if "failed" not in it}

    def write() -> None:
        left = [name for name in items if name not in done]
        parts[part] = {"machine": machine, "items": done, "left": left}
        write_json(path, parts)

    for name, item in items.items():
        if name in done or name in skipped:
            continue
        if time.monotonic() > until:
            break
        item_began = time.monotonic()
        try:
            done[name] = item()
        except Exception as error:  # one measurement that fails must not cost the others
            done[name] = {"failed": f"{type(error).__name__}: {error}"}
        with suppress(RuntimeError):  # a GPU that failed fails here too
            if setting.device == "cuda":
                torch.cuda.empty_cache()
        spent = time.monotonic() - item_began
        print(f"{part}: {name}: {done[name].get('failed', 'done')} ({spent:.0f} s)", flush=True)
        write()
    if done:
        write()
    failed = [name for name, item in done.items() if "failed" in item]
    left = [name for name in items if name not in done]
    if left:
        print(f"{part}: not measured yet: {', '.join(left)}")
    return not left and not failed
