"""Whether a claim kept to what was registered of its sweep before that trained.

It did where its rule and all that the rule reads are the registered ones, the table has the
registered runs and no other, and none of them began before.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from moelaws.claims.base import PredictedBefore, Registered
from moelaws.records.code import CODE, Entries
from moelaws.records.registration import Predicted, Registration
from moelaws.spec.study import Study
from moelaws.spec.words import counted

NOT, KEPT = "not preregistered", "preregistered"
DEVIATES = "preregistered, with deviations"
LAST = datetime.max.replace(tzinfo=UTC)


def applying(registrations: Sequence[Registration], runs: Collection[str]) -> Registration | None:
    """Returns the newest registration that holds for these runs.

    It holds where one of the runs is registered and each registration that it amends is here.
    """
    for own in sorted(registrations, key=lambda one: one.time, reverse=True):
        if own.runs.keys() & runs and not _chain(own, registrations)[-1].amends:
            return own
    return None


def _chain(own: Registration, registrations: Sequence[Registration]) -> list[Registration]:
    """Returns a registration and those that it amends, as far as they are here."""
    older = [one for one in registrations if one.digest == own.amends]
    return [own, *(_chain(older[0], registrations) if older else [])]


def registered(
    study: Study,
    entries: Entries,
    table: pd.DataFrame,
    processes: Mapping[str, Sequence[Mapping[str, Any]]],
    registrations: Sequence[Registration],
    rounds: Mapping[str, Collection[str]] = {},
) -> dict[str, Registered]:
    """Returns claim -> how it kept to the registration of the study's sweep.

    ``entries`` are those of today. ``processes`` has, by run, what is on record of each process
    that trained it. ``rounds`` has the runs that were chosen by a registered rule, by the digest of
    the registration.
    """
    runs = {*table["run_id"]}
    own = applying(registrations, runs)
    if own is None:
        none = Registered(state=NOT, digest="", time="", deviations=[])
        return dict.fromkeys((claim.name for claim in study.claims), none)
    chosen = {*own.runs} if own.rule is None else {*rounds.get(own.digest, ())}
    began = {
        run: min(datetime.fromisoformat(one["started"]) for one in processes[run])
        for run in runs
        if processes.get(run)
    }
    early = [run for run in runs & chosen if run in own.seen or own.time >= began.get(run, LAST)]
    late = f"registered after {len(early)} of {counted(len(chosen), 'run')} were trained"
    common = [f"amended: {one.why}" for one in _chain(own, registrations) if one.amends]
    for words, others in (
        ("added", runs - chosen),
        ("missing", chosen - runs),
        ("without a record of when they began", (runs & chosen) - began.keys()),
    ):
        if others:
            common.append(f"{counted(len(others), 'run')} {words}: {', '.join(sorted(others))}")
    states = {}
    for claim in study.claims:
        places = _read(study, claim.name)
        changes = [one for place in places for one in _changes(own.entries, entries, *place)]
        # Code that changed is listed and does not spoil a claim by itself: its digest covers every
        # helper, and the old code is at the registered commit.
        kept = not common and all(is_code for is_code, _ in changes)
        states[claim.name] = Registered(
            state=late if early else KEPT if kept else DEVIATES,
            digest=own.digest,
            time=own.time.isoformat(),
            deviations=[*common, *(text for _, text in changes)],
        )
    return states


def _read(study: Study, claim: str) -> Iterator[tuple[str, str]]:
    """Yields (kind, name) of a claim and of all that it reads, each once."""
    known = {e.name: (kind, e) for kind in ("fits", "derived") for e in getattr(study, kind)}
    yield "claims", claim
    waiting, done = {*study.entry("claims", claim).needs}, set[str]()
    while waiting:
        done.add(name := waiting.pop())
        kind, entry = known[name]
        yield kind, name
        waiting |= entry.needs - done


def _changes(was: Entries, now: Entries, kind: str, name: str) -> Iterator[tuple[bool, str]]:
    """Yields how an entry differs from the registered one, and whether by its code alone."""
    before, after = (entries.get(kind, {}).get(name, {}) for entries in (was, now))
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            change = f"{kind} {name}: {key} was {before.get(key)!r}, is {after.get(key)!r}"
            yield key == CODE and key in before and key in after, change


def compared(own: Registration, table: pd.DataFrame) -> Iterator[tuple[Predicted, pd.DataFrame]]:
    """Yields what each fit predicted: the loss L that came, and value, low and high, by run."""
    for one in own.predictions:
        losses = pd.DataFrame(dict(one.losses), ["value", "low", "high"]).astype(float).T
        yield one, losses.join(table.set_index("run_id")["L"], how="inner")


def beside(own: Registration, table: pd.DataFrame) -> list[PredictedBefore]:
    """Returns how the losses that fits predicted lie beside those that came."""
    rows = list[PredictedBefore]()
    for one, losses in compared(own, table):
        known = losses.dropna()
        rows.append(
            PredictedBefore(
                fit=one.fit,
                law=one.law,
                level=one.level,
                losses=len(known),
                inside=int(known["L"].between(known["low"], known["high"]).sum()),
                rmse=float((losses["L"] - losses["value"]).pow(2).mean() ** 0.5),
            )
        )
    return rows
