"""A fresh process that trains to its first optimizer step and prints where its time went.

``moelaws train`` itself, with clocks put around its parts; ``speed.start`` calls it.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

began = time.time()  # as the parent's clock, which knows when this process was asked for
spent: dict[str, float] = {}
inside: list[str] = []  # names of the parts that run now, the outermost first


def clocked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, its seconds added to the part ``name``; those of parts within go to theirs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        since = time.perf_counter()
        inside.append(name)
        try:
            return function(*args, **kwargs)
        finally:
            inside.pop()
            took = time.perf_counter() - since
            spent[name] = spent.get(name, 0.0) + took
            if inside:
                spent[inside[-1]] = spent.get(inside[-1], 0.0) - took

    return call


def clock_imports() -> None:
    """Sort imports into torch's own, with all that they pull in, and the others."""
    plain = builtins.__import__
    torchs, others = clocked("torch_imports", plain), clocked("other_imports", plain)

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        within = inside[-1] if inside else ""
        if within == "torch_imports":
            return plain(name, globals, locals, fromlist, level)
        asking = (globals or {}).get("__name__", "")
        if name.split(".")[0] == "torch" or asking.split(".")[0] == "torch":
            return torchs(name, globals, locals, fromlist, level)
        if within == "other_imports":
            return plain(name, globals, locals, fromlist, level)
        return others(name, globals, locals, fromlist, level)

    builtins.__import__ = importing


class Done(BaseException):
    """The first step is made."""


def first_step(step: Callable[..., Any]) -> Callable[..., Any]:
    clock = clocked("first_step", step)

    def call(*args: Any) -> None:
        clock(*args)
        raise Done

    return call


def main() -> None:
    clock_imports()
    # In the command's own order: NumPy is loaded by whoever wants it first, and that is torch.
    load = clocked("other_imports", import_module)
    cli = load("moelaws.cli").cli
    load("moelaws.cli.train")
    load("moelaws.training.run")
    job = load("moelaws.training.job")
    job.PreparedCorpus.open = clocked("corpus_open", job.PreparedCorpus.open)
    job.Transformer = clocked("model_build", job.Transformer)
    job.Trainer.train_step = first_step(job.Trainer.train_step)
    try:
        cli(["train", *sys.argv[1:]], standalone_mode=False)
    except Done:
        total = time.time() - float(os.environ["ASKED_FOR_AT"])
    spent["python_start"] = began - float(os.environ["ASKED_FOR_AT"])
    spent["rest"] = total - sum(spent.values())
    print(json.dumps({"total": total, **spent}))


if __name__ == "__main__":
    main()
