"""What was trained: how many runs of which studies, of what sizes, on what text and machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.explore.material import Material
from moelaws.explore.runs import Runs
from moelaws.explore.words import amount, answer, count, hours, listed, span, table
from moelaws.records.files import read_json
from moelaws.records.runs import Record, flatten


def trained(material: Material, runs: Runs) -> dict[str, Any]:
    """Returns the answer; it says so where nothing was trained yet."""
    frame = runs.frame
    paragraphs: list[str] = []
    if not len(frame):
        paragraphs.append("No run of this tier is on record yet.")
        return answer("What was trained", paragraphs)
    by_source = {str(source): rows for source, rows in frame.groupby("source")}
    if (own := by_source.get("trained")) is not None:
        paragraphs += [*_own(own), *_where(material, runs, own)]
    else:
        paragraphs.append("No model of this tier was trained here.")
    if (simulated := by_source.get("simulated")) is not None:
        paragraphs.append(
            f"The losses of {count(len(simulated), 'run')} are simulated: a published law gave "
            "them, with noise added. They test the method and tell nothing about real models."
        )
    if (imported := by_source.get("imported")) is not None:
        by = [f"{count(n, 'run')} in {study}" for study, n in Counter(imported["study"]).items()]
        paragraphs.append(
            f"Somebody else trained and published further runs, which are analysed beside: "
            f"{listed(by)}."
        )
    rows = list(_rows(material, frame))
    columns = (
        *("study", "question", "runs", "status", "all parameters", "active parameters"),
        *("training tokens", "training FLOPs", "time"),
    )
    return answer("What was trained", paragraphs, table=table(columns, rows, text=2))


def _own(own: pd.DataFrame) -> Iterator[str]:
    done = own[own["status"] == "completed"]
    others = Counter(own["status"][own["status"] != "completed"])
    what = [f"{n} {_status(status)}" for status, n in others.items()]
    ended = f"of which {len(done):,} completed; {listed(what)}" if what else "all completed"
    yield f"Trained here: {count(len(own), 'model')}, {ended}."
    if len(done):
        yield (
            f"The completed ones have {_span(done, 'N_total')} parameters, of which each token "
            f"uses {_span(done, 'N_active')}, and read {_span(done, 'D')} tokens. Their sparsity, "
            "the share of the experts that a token does not use, lies between "
            f"{done['S'].min():.3g} and {done['S'].max():.3g}. All together they cost "
            f"{done['C_6N'].sum():.3g} FLOPs (6 x active parameters x tokens) and "
            f"{hours(float(done['seconds'].sum()))} of running, one run after the other."
        )


def _where(material: Material, runs: Runs, own: pd.DataFrame) -> Iterator[str]:
    """Yields what machine and text the records name."""
    records = [runs.records[run] for run in own["run_id"] if run in runs.records]
    machines = Counter(filter(None, map(_machine, records)))
    if machines:
        named = [f"{machine} ({count(n, 'run')})" for machine, n in machines.most_common(4)]
        yield f"They ran on {listed(named)}."
    told = material.results.root / "corpora"
    for path in sorted(told.glob("*/meta.json")):
        meta = material.read(read_json, path) or {}
        known = flatten(meta)
        corpus = {r.config.get("corpus", {}).get("source", {}).get("digest") for r in records}
        if known.get("corpus.source.digest") in corpus and "train.tokens" in known:
            yield (
                f"The text is {known.get('sources.name', 'a text of your own')}: "
                f"{amount(known['train.tokens'])} tokens to train on and "
                f"{amount(known['validation.tokens'])} held out, by a vocabulary of "
                f"{known['corpus.vocab_size']:,}. Every loss is measured on held-out text."
            )


def _machine(record: Record) -> str:
    made = record.provenance
    if not made:
        return ""
    if (device := made.get("device", "cpu")) != "cpu":
        return str(device)
    threads = made.get("threads") or 1
    return f"{count(int(threads), 'thread')} of {made.get('cpu', 'a CPU')}"


def _rows(material: Material, frame: pd.DataFrame) -> Iterator[list[str]]:
    for study in material.studies:
        own = frame[[study.study in of.split(", ") for of in frame["study"]]]
        if not len(own):
            continue
        statuses = Counter(own["status"])
        flops = own["C_6N"].sum() if "C_6N" in own else 0.0
        seconds = own["seconds"].sum() if "seconds" in own else 0.0
        yield [
            study.study,
            study.title,
            f"{len(own):,}",
            ", ".join(f"{n:,} {_status(status)}" for status, n in statuses.items()),
            _span(own, "N_total") or _span(own, "N_total_nonemb"),
            _span(own, "N_active") or _span(own, "N_active_nonemb"),
            _span(own, "D"),
            f"{flops:.3g}" if flops else "",
            hours(float(seconds)) if seconds else "",
        ]


def _status(status: str) -> str:
    return {"out_of_memory": "ran out of memory", "running": "still running"}.get(status, status)


def _span(frame: pd.DataFrame, column: str) -> str:
    """Returns the range of a column; empty where it holds nothing."""
    if column not in frame or not (known := frame[column].dropna().astype(float)).size:
        return ""
    return span(known.min(), known.max())
