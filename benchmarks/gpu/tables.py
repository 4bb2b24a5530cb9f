"""The table of each part, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

NOT_MEASURED = "not measured"
MODELS = ("torch", "megablocks", "dense")  # whose steps are timed


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(map(str, row))} |" for row in (heads, *rows)]
    return [lines[0], "|-" * len(heads) + "|", *lines[1:]]


def _cell(row: dict[str, Any], key: str, form: Callable[[Any], str]) -> str:
    if why := row.get("failed") or row.get("not_measured"):
        return "failed" if "failed" in row else f"{NOT_MEASURED}: {why}"[:120]
    return form(row[key]) if row.get(key) is not None else NOT_MEASURED


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _giga(value: float) -> str:
    return f"{value / 1e9:.1f}"


def _tests(items: dict[str, Any]) -> list[str]:
    counts = ("tests", "failures", "errors", "skipped")
    rows = [[name, *(_cell(row, key, str) for key in counts)] for name, row in items.items()]
    failed = [f"- {test['test']} failed: {test['message']}" for row in items.values()
              for test in row.get("failed_tests", [])]  # fmt: skip
    return [*_table(("folder", *counts), rows), *([""] if failed else []), *failed]


def _accuracy(items: dict[str, Any]) -> list[str]:
    rows = []
    for name, row in items.items():
        worst = max(row["errors"].values()) if "errors" in row else None
        rows.append([name, _cell({**row, "worst": worst}, "worst", "{:.1e}".format),
                     _cell(row, "tolerance", "{:g}".format)])  # fmt: skip
    return _table(("back end, precision", "largest error", "allowed"), rows)


def _resume(items: dict[str, Any]) -> list[str]:
    keys = ("killed_is_bit_for_bit", "largest_difference", "largest_difference_of_two_alone")
    rows = [[name, _cell(row, keys[0], lambda yes: "yes" if yes else "no"),
             *(_cell(row, key, "{:.2g}".format) for key in keys[1:])]
            for name, row in items.items()]  # fmt: skip
    heads = ("run", "the same bits", "largest difference, nats", "of two runs left alone")
    return _table(heads, rows)


def _speed(items: dict[str, Any]) -> list[str]:
    steps, layers = [], []
    for name, row in items.items():
        if "failed" in row:
            steps.append([name, "failed", *[""] * 5])
            continue
        step, layer = row["step"], row["layer"]
        forms = (("tokens_per_second", _whole), ("utilisation", _percent))
        steps.append([name, *(_cell(step[of], key, form) for of in MODELS for key, form in forms)])
        layers.append([name, *(_cell(layer[of], "tokens_per_second", _whole) for of in layer)])
    heads = [f"{of}: {what}" for of in MODELS for what in ("tokens/s", "MFU")]
    names = next((list(row["layer"]) for row in items.values() if "layer" in row), [])
    return [*_table(("step of a model", *heads), steps), "",
            *_table(("one layer", *(f"{name}: tokens/s" for name in names)), layers)]  # fmt: skip


def _profile(items: dict[str, Any]) -> list[str]:
    measured = {name: row for name, row in items.items() if "kinds" in row}
    kinds = next((list(row["kinds"]) for row in measured.values()), [])
    whole = {name: {"a step, as trained": row["step_milliseconds"],
                    "all kernels": row["milliseconds"], **row["kinds"]}
             for name, row in measured.items()}  # fmt: skip
    rows = [[kind, *(f"{row[kind]:.2f}" for row in whole.values())]
            for kind in ("a step, as trained", "all kernels", *kinds)]  # fmt: skip
    started = ["kernels started", *(_whole(r["kernels_started"]) for r in measured.values())]
    failed = [f"- {name} failed: {row['failed']}" for name, row in items.items() if "failed" in row]
    return [*_table(("kind of kernel", *measured), [*rows, started]), *failed]


def _packing(items: dict[str, Any]) -> list[str]:
    rows = [[name, _cell(row, "tokens_per_second", _whole), _cell(row, "peak_bytes", _giga)]
            for name, row in items.items()]  # fmt: skip
    return _table(("runs", "tokens/s of all", "GB of tensors of all"), rows)


def _tier(items: dict[str, Any]) -> list[str]:
    rows = [
        [name, _cell(row, "tokens_per_second", _whole), _cell(row, "utilisation", _percent),
         _cell(row, "peak_bytes", _giga), _cell(row, "runs", str),
         _cell(row, "hours", "{:.2f}".format), _cell(row, "hours_expected", "{:.2f}".format)]
        for name, row in items.items()
    ]  # fmt: skip
    timed = [row for row in items.values() if "hours" in row]
    hours, expected = (sum(row[key] for row in timed) for key in ("hours", "hours_expected"))
    said = (
        f"The training steps of the {sum(row['runs'] for row in timed)} runs of these sizes take "
        f"{hours:.1f} hours by these speeds; `moelaws grid` expected {expected:.1f} with start and "
        "evaluation."
    )
    heads = ("size", "tokens/s", "MFU", "GB", "runs", "hours", "expected")
    return [*_table(heads, rows), "", said]


TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "tests": _tests, "accuracy": _accuracy, "resume": _resume, "speed": _speed,
    "profile": _profile, "packing": _packing, "tier": _tier,
}  # fmt: skip
