"""Whether a claim kept to what was registered of its sweep before that trained.

It did where its rule and all that the rule reads are the registered ones, the table has the
registered runs and no other, and none of them began before.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
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
LISTED = 8  # runs that a deviation names


def applying(
    registrations: Sequence[Registration], runs: Collection[str], stages: Collection[str] = ()
) -> list[Registration]:
    """Returns the registrations that hold for these runs, the newest first.

    One holds where a run of it is here, and each registration that it amends. Of those that have a
    run in common the newest holds, and of stages that were registered one by one the newest of
    each; where the table has some ``stages`` alone, those of others do not.
    """
    holding: list[Registration] = []
    for own in sorted(registrations, key=lambda one: one.time, reverse=True):
        fixed = {stage for one in holding for stage in one.stages}
        has_others = own.stages and not fixed & {*own.stages}
        rivals = (one for one in holding if not (has_others and one.stages))
        joins = not any(own.runs.keys() & one.runs.keys() for one in rivals)
        here = own.runs.keys() & runs and (not stages or {*own.stages} <= {*stages})
        if here and joins and not _chain(own, registrations)[-1].amends:
            holding.append(own)
    return holding


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
    stages: Collection[str] = (),
) -> dict[str, Registered]:
    """Returns claim -> how it kept to the registration of the study's sweep, or of its stages.

    ``entries`` are those of today. ``processes`` has, by run, what is on record of each process
    that trained it. ``rounds`` has the runs that were chosen by a registered rule, by the digest of
    the registration. The table may have the runs of some ``stages`` alone.
    """
    runs = {*table["run_id"]}
    holding = applying(registrations, runs, stages)
    if not holding:
        none = Registered(state=NOT, digest="", time="", deviations=[])
        return dict.fromkeys((claim.name for claim in study.claims), none)
    own = holding[0]
    chosen = dict[str, Registration]()  # run -> the first registration that has it
    for one in holding:
        fixed = {*one.runs} if one.rule is None else {*rounds.get(one.digest, ())}
        chosen |= dict.fromkeys(fixed, one)
    began = {
        run: min(datetime.fromisoformat(one["started"]) for one in processes[run])
        for run in runs
        if processes.get(run)
    }
    early = [
        run
        for run in runs & chosen.keys()
        if run in chosen[run].seen or chosen[run].time >= began.get(run, LAST)
    ]
    late = f"registered after {len(early)} of {counted(len(chosen), 'run')} were trained"
    chains = [one for head in holding for one in _chain(head, registrations)]
    common = [f"amended: {one.why}" for one in chains if one.amends]
    for words, others in (
        ("added", runs - chosen.keys()),
        ("missing", chosen.keys() - runs),
        ("without a record of when they began", (runs & chosen.keys()) - began.keys()),
    ):
        if others:
            named, more = sorted(others)[:LISTED], len(others) - LISTED
            rest = f" and {more} more" if more > 0 else ""
            common.append(f"{counted(len(others), 'run')} {words}: {', '.join(named)}{rest}")
    states = {}
    for claim in study.claims:
        places = [*_read(study, claim.name)]
        # A registration of other stages may have left the claim out.
        fixing = [one for one in holding if claim.name in one.entries.get("claims", {})]
        changes = dict.fromkeys(  # each once, though several registrations may list it
            change
            for one, place in product(fixing or [own], places)
            for change in _changes(one.entries, entries, *place)
        )
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
