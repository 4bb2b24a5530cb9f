"""How claims kept to a registration: what counts as a deviation, and what came before it."""

from datetime import UTC, datetime, timedelta
from functools import cache

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.claims.registration import DEVIATES, KEPT, NOT, beside, compared, registered
from moelaws.figures.predicted import draw
from moelaws.records.code import CODE
from moelaws.records.registration import Registration
from moelaws.spec.project import load_study
from moelaws.workflow.code import entries_of
from moelaws.workflow.labels import report_labels
from repository import REPOSITORY

STUDY = load_study("sparsity", REPOSITORY)
RUNS = tuple(f"{i:016x}" for i in range(6))
TIME = datetime(2026, 12, 1, 12, tzinfo=UTC)
CLAIM = "total_size_rises_with_sparsity"


@cache
def entries():
    return entries_of(STUDY)


def own(**changes):
    known = {
        "digest": "a" * 64, "study": "sparsity", "tier": "demo", "title": STUDY.title, "time": TIME,
        "commit": "c" * 40, "moelaws": "0.1.0", "python": "3.11", "packages": {}, "seen": (),
        "table": False, "runs": dict.fromkeys(RUNS, (1e12, ("all",))), "entries": entries(),
    }  # fmt: skip
    return Registration(**known | changes)


def table(runs=RUNS, status="completed"):
    return pd.DataFrame({"run_id": runs, "status": status, "L": 3.0})


def began(hours=1.0, **others):
    """Each run was trained by one process, so long after the registration."""
    return {run: [at(others.get(f"run_{i}", hours))] for i, run in enumerate(RUNS)}


def at(hours):
    return {"started": (TIME + timedelta(hours=hours)).isoformat(), "commit": "d" * 40}


def states(registrations=None, runs=None, now=None, origins=None):
    registrations = [own()] if registrations is None else registrations
    frame = table() if runs is None else table(runs)
    return registered(STUDY, now or entries(), frame, origins or began(), registrations)


def test_a_sweep_that_was_trained_as_registered():
    for kept in states().values():
        assert kept["state"] == KEPT
        assert kept["deviations"] == []
        assert kept["digest"] == "a" * 64


@pytest.mark.parametrize("registrations", [[], [own(runs={"f" * 16: (None, ())})]])
def test_without_a_registration_of_its_runs_no_claim_is_preregistered(registrations):
    assert {kept["state"] for kept in states(registrations).values()} == {NOT}


@pytest.mark.parametrize(("runs", "words"), [
    ((*RUNS, "e" * 16), "1 run added: eeeeeeeeeeeeeeee"),
    ((*RUNS, *"abcdefghij"), "10 runs added: a, b, c, d, e, f, g, h and 2 more"),
    (RUNS[:4], "2 runs missing: 0000000000000004, 0000000000000005"),
])  # fmt: skip
def test_a_run_added_or_missing_is_a_deviation_of_all_claims(runs, words):
    for kept in states(runs=runs).values():
        assert (kept["state"], kept["deviations"]) == (DEVIATES, [words])


def test_runs_without_a_record_are_a_deviation():
    origins = {run: made_by for run, made_by in began().items() if run != RUNS[1]}
    kept = states(origins=origins)[CLAIM]
    assert kept["state"] == DEVIATES
    assert kept["deviations"] == [f"1 run without a record of when they began: {RUNS[1]}"]


def test_a_run_that_failed_is_one_of_the_registered_ones():
    failed = table(status=["diverged", *["completed"] * 5])
    kept = registered(STUDY, entries(), failed, began(), [own()])
    assert kept[CLAIM]["state"] == KEPT


@pytest.mark.parametrize(("registration", "origins"), [
    (own(), began(run_2=-0.5)),
    (own(), began(run_2=0.0)),
    (own(seen=(RUNS[2],)), began()),
    # The process at the end began later, and it took over from one that began before.
    (own(), began() | {RUNS[2]: [at(2.0), at(-3.0)]}),
])  # fmt: skip
def test_a_run_that_began_before_spoils_all_claims(registration, origins):
    said = {kept["state"] for kept in states([registration], origins=origins).values()}
    assert said == {"registered after 1 of 6 runs were trained"}


def changed(kind, name, key, value):
    own_kind = {**entries()[kind], name: {**entries()[kind][name], key: value}}
    return {**entries(), kind: own_kind}


KEYS = [
    (kind, name, key)
    for kind, by_name in entries().items()
    for name, entry in by_name.items()
    for key in entry
    if key != CODE
]


@given(place=st.sampled_from(KEYS))
def test_any_change_of_what_a_claim_reads_is_listed_and_no_other(place):
    kind, name, _ = place
    known = {e.name: e for e in (*STUDY.fits, *STUDY.derived)}

    def reads(claim):
        waiting, seen = {*claim.needs}, set()
        while waiting:
            seen.add(one := waiting.pop())
            waiting |= known[one].needs - seen
        return (kind == "claims" and name == claim.name) or (
            kind in ("fits", "derived") and name in seen
        )

    for claim in STUDY.claims:
        kept = states(now=changed(*place, "another"))[claim.name]
        if reads(claim):
            assert kept["state"] == DEVIATES
            (line,) = kept["deviations"]
            assert line.startswith(f"{kind} {name}: {place[2]} was ")
            assert line.endswith(", is 'another'")
        else:
            assert (kept["state"], kept["deviations"]) == (KEPT, [])


def test_code_that_changed_is_listed_and_spoils_nothing():
    kept = states(now=changed("claims", CLAIM, CODE, "0" * 16))[CLAIM]
    assert kept["state"] == KEPT
    (line,) = kept["deviations"]
    assert line.startswith(f"claims {CLAIM}: {CODE} was ")


def test_an_amendment_is_a_deviation_with_its_reason():
    newer = own(
        digest="b" * 64, amends="a" * 64, why="the GPU was lent for an hour less",
        time=TIME + timedelta(minutes=5),
    )  # fmt: skip
    kept = states([newer, own()])[CLAIM]
    assert (kept["digest"], kept["state"]) == ("b" * 64, DEVIATES)
    assert kept["deviations"] == ["amended: the GPU was lent for an hour less"]
    # What it amends is gone, so that it counts for nothing.
    assert states([newer])[CLAIM]["state"] == NOT


def test_the_reports_list_says_whether_a_figure_is_as_registered():
    def label(*registrations):
        return report_labels(STUDY, "F7", registrations)["registered"]

    other = changed("figures", "F7", "caption", "another")
    assert label() == "no"
    assert label(own()) == "a" * 16
    assert label(own(entries=other)) == "with deviations"
    newer = own(digest="b" * 64, time=TIME + timedelta(minutes=5))
    assert label(own(entries=other), newer) == "b" * 16


def predicting():
    """A registration that predicted six losses, one of them without an interval."""
    losses = {run: (2.9 + 0.1 * i, 2.8, 2.95 + 0.1 * i) for i, run in enumerate(RUNS)}
    losses[RUNS[5]] = (3.0, None, None)
    about = {"fit": "loss.json", "law": "chinchilla", "digest": "f" * 64, "level": 0.9}
    return own(predictions=[{**about, "losses": losses}])


def test_predicted_losses_stand_beside_those_that_came():
    (one,) = beside(predicting(), table())
    assert (one["losses"], one["inside"], one["law"]) == (5, 4, "chinchilla")
    squares = [0.1 * (i - 1) for i in range(5)]
    assert one["rmse"] == pytest.approx((sum(x * x for x in squares) / 6) ** 0.5)


def test_the_figure_shows_which_losses_their_intervals_hold():
    shown = draw([*compared(predicting(), table())]).data
    inside = "inside its 90% interval"
    assert shown["series"].tolist() == [inside] * 4 + ["outside, or without one"] * 2
    bars = shown[shown["low"].notna()]
    crosses = (bars["low"] <= 0) & (bars["high"] >= 0)
    assert crosses.tolist() == (bars["series"] == inside).tolist()


def test_of_a_registered_rule_the_runs_are_those_that_it_chose():
    ruled, chosen = own(rule={"target": "C=1e13"}), RUNS[:4]
    for runs, state, deviations in (
        (chosen, KEPT, []),
        (RUNS, DEVIATES, [f"2 runs added: {', '.join(RUNS[4:])}"]),
    ):
        rounds = {ruled.digest: chosen}
        kept = registered(STUDY, entries(), table(runs), began(), [ruled], rounds)[CLAIM]
        assert (kept["state"], kept["deviations"]) == (state, deviations)


def test_stages_that_were_registered_one_by_one_count_together():
    later = TIME + timedelta(hours=0.5)
    # The second stage registers a run of the first one, too.
    first = own(stages=["first"], runs=dict.fromkeys(RUNS[:3], (1e12, ("all",))))
    second = own(
        digest="b" * 64, stages=["second"], time=later, runs=dict.fromkeys(RUNS[2:], (1e12, ()))
    )
    kept = states([first, second])[CLAIM]
    assert (kept["digest"], kept["state"], kept["deviations"]) == ("b" * 64, KEPT, [])
    # A run counts from the first registration that has it.
    assert states([first, second], origins=began(run_2=0.25))[CLAIM]["state"] == KEPT
    early = states([first, second], origins=began(run_3=0.25))[CLAIM]["state"]
    assert early.startswith("registered after 1 ")
    one = registered(STUDY, entries(), table(RUNS[:3]), began(), [first, second], {}, ["first"])
    assert (one[CLAIM]["digest"], one[CLAIM]["deviations"]) == ("a" * 64, [])
    # Each binds: a rule that changed between them is a deviation.
    between = second.model_copy(update={"entries": changed("claims", CLAIM, "rule", "another")})
    assert states([first, between])[CLAIM]["state"] == DEVIATES
    assert states([first])[CLAIM]["deviations"] == [f"3 runs added: {', '.join(RUNS[3:])}"]


def test_a_stage_that_came_later_leaves_the_registration_of_the_rest():
    rest = own(runs=dict.fromkeys(RUNS[:3], (1e12, ("all",))), seen=RUNS[:2])
    added = {"stages": ["more"], "time": TIME + timedelta(hours=0.5)}
    stage = own(digest="b" * 64, runs=dict.fromkeys(RUNS[3:], (1e12, ())), **added)
    both = states([rest, stage])[CLAIM]
    assert both["state"].startswith(f"registered after 2 of {len(RUNS)} runs")
    assert both["deviations"] == []
