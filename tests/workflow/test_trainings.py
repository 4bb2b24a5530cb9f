"""Which runs one job trains: a matter of the grid alone, and one run more changes one batch."""

import hashlib
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.files.atomic import read_json, write_json
from moelaws.files.layout import Results
from moelaws.records.batches import Orders, is_done, write_marker
from moelaws.workflow.jobs import Jobs
from moelaws.workflow.requests import START, batches_of
from moelaws.workflow.trainings import Trainings
from repository import REPOSITORY

LONGEST = 60.0


def run_id(number):
    return hashlib.sha256(str(number).encode()).hexdigest()[:16]


SECONDS = st.dictionaries(
    st.integers(0, 10**6).map(run_id), st.floats(0, 2 * LONGEST) | st.just(math.inf), max_size=200
)


@given(SECONDS)
def test_each_run_is_in_one_batch_of_at_most_the_longest_time(seconds):
    batches = batches_of(seconds, seconds.__getitem__, LONGEST)
    assert sorted(run for batch in batches.values() for run in batch) == sorted(seconds)
    for batch in batches.values():
        assert len(batch) == 1 or sum(START + seconds[r] for r in batch) <= LONGEST


@given(SECONDS, st.integers(0, 10**6).map(run_id), st.randoms())
def test_one_run_more_changes_one_batch_and_the_order_of_runs_none(seconds, more, random):
    def digests(runs):
        return set(batches_of(runs, seconds.__getitem__, LONGEST))

    before = digests(seconds)
    shuffled = list(seconds)
    random.shuffle(shuffled)
    assert digests(shuffled) == before
    seconds = {more: 1.0, **seconds}
    assert len(before - digests(seconds)) <= 1


@given(SECONDS, st.integers(1, 9))
def test_runs_of_one_trunk_are_in_one_batch(seconds, trunks):
    def trunk(run):
        return run_id(f"trunk {int(run, 16) % trunks}") if int(run, 16) % 2 else None

    batches = batches_of(seconds, seconds.__getitem__, LONGEST, trunk)
    places = {run: digest for digest, batch in batches.items() for run in batch}
    for group in {trunk(run) for run in seconds} - {None}:
        assert len({places[run] for run in seconds if trunk(run) == group}) == 1


def test_the_demo_is_some_jobs_and_each_study_has_batches_of_its_own():
    every = Trainings(Jobs.load({"studies": "all", "batch_minutes": 0.5}, REPOSITORY))
    alone = Trainings(Jobs.load({"studies": "sparsity", "batch_minutes": 0.5}, REPOSITORY))
    assert alone.of_study["sparsity"] == every.of_study["sparsity"]
    assert 5 < len(alone.batches) < len(alone.jobs.runs) / 2
    single = Trainings(Jobs.load({"studies": "sparsity", "batch_minutes": 0}, REPOSITORY))
    assert len(single.batches) == len(single.jobs.runs)


@pytest.fixture
def trainings(tmp_path):
    """The trainings of the demo of the study of sparsity, of which nothing is done."""
    jobs = Jobs.load({"studies": "sparsity"}, REPOSITORY)
    return lambda: Trainings(replace(jobs, results=Results(tmp_path / "results")))


def finish(trainings, digest):
    """Writes what a trainer leaves of a batch, but for the records themselves."""
    results = trainings.jobs.results
    orders = Orders.read(results.batch_runs(digest)).runs
    for order in orders:
        write_json(results.summary(order.config.run_id), {"status": "completed"})
        write_json(results.kept(order.config.run_id), {"status": "completed"})
    write_marker(results.batch(digest), orders, results)
    return [order.config.run_id for order in orders]


def test_a_marker_that_is_not_true_any_more_is_removed(trainings):
    first = trainings()
    assert set(first.pending) == set(first.batches)
    first.prepare()
    results = first.jobs.results
    digest = max(first.batches, key=lambda digest: len(first.kept(first.batches[digest])))
    other = first.kept(first.batches[digest])[0]
    run = next(run for run in finish(first, digest) if run != other)
    assert digest not in trainings().pending

    def expires(change, undo=lambda: None):
        change()
        now = trainings()
        assert digest in now.pending
        now.prepare()
        assert not results.batch(digest).exists()
        undo()
        finish(now, digest)
        assert digest not in trainings().pending

    summary = results.summary(run)
    content = summary.read_bytes()
    expires(summary.unlink, lambda: summary.write_bytes(content))  # a record removed by hand
    expires(results.kept(other).unlink)  # weights removed by hand
    expires(lambda: write_json(summary, {"status": "completed", "loss": 1.0}))  # trained anew
    marker = results.batch(digest)
    expires(lambda: marker.write_text(marker.read_text()[:-40]))


def test_a_run_that_lacked_memory_makes_its_batch_run_again_and_one_that_diverged_does_not(
    trainings,
):
    first = trainings()
    first.prepare()
    results = first.jobs.results
    digest = next(iter(first.batches))
    run, *_ = finish(first, digest)
    orders = Orders.read(results.batch_runs(digest)).runs
    for status, again in (("diverged", []), ("out_of_memory", [run])):
        write_json(results.summary(run), {"status": status})
        write_marker(results.batch(digest), orders, results)
        assert read_json(results.batch(digest))["again"] == again
        assert is_done(results.batch(digest), {}, results) == (not again)


def test_more_weights_to_keep_run_a_batch_again_and_fewer_do_not(trainings):
    first = trainings()
    first.prepare()
    results = first.jobs.results
    digest = next(x for x, runs in first.batches.items() if first.kept(runs))
    finish(first, digest)
    run, *_ = first.kept(first.batches[digest])
    marker = results.batch(digest)
    steps = first.jobs.all_kept[run]
    assert is_done(marker, {run: tuple(steps)}, results)
    assert is_done(marker, {}, results)
    assert not is_done(marker, {run: (*steps, 10**9)}, results)
