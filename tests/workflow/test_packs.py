"""Which runs share a job of a cluster: a matter of the sweeps alone."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from moelaws.workflow.jobs import Jobs
from moelaws.workflow.packs import MOST, SHORT, START, Packs
from repository import REPOSITORY

RUNS = st.dictionaries(st.integers(0, 10**6).map(str), st.floats(0, 2 * SHORT), max_size=300)
STUDIES = ("a", "b")


@given(RUNS, st.floats(1, 1e5), st.data())
def test_a_pack_is_of_short_runs_of_the_same_studies_up_to_its_length(seconds, longest, data):
    runs = sorted(seconds)
    sweeps = {study: data.draw(st.just(runs[i::2] + runs[::3])) for i, study in enumerate(STUDIES)}
    packs = Packs.made_of(sweeps, seconds.__getitem__, longest)
    members = defaultdict(list)
    for run, pack in packs.of.items():
        members[pack].append(run)
    for of_pack in members.values():
        assert 2 <= len(of_pack) <= MOST
        assert max(seconds[run] for run in of_pack) < SHORT
        assert len({tuple(run in sweeps[study] for study in STUDIES) for run in of_pack}) == 1
    if seconds and len(packs.of) == len(seconds):
        together = [sum(START + seconds[run] for run in of_pack) for of_pack in members.values()]
        assert sum(together) <= longest * len(members)


def test_a_pack_asks_once_for_what_a_job_needs_once():
    """Also where only some of its runs are needed: the others are done, or not asked for."""
    runs = [*"abcdef", "long"]
    packs = Packs.made_of({"a": runs}, {**dict.fromkeys(runs, 1.0), "long": SHORT}.get, 10)
    assert packs.of == {
        "a": "pack_1",
        "c": "pack_1",
        "e": "pack_1",
        "b": "pack_2",
        "d": "pack_2",
        "f": "pack_2",
    }
    assert packs.firsts(runs) == {"a", "b"}
    assert packs.firsts({"e", "d", "f", "long"}) == {"e", "d"}
    assert packs.words("bcd") == "3 short runs share 2 jobs"
    assert packs.words("bd") == "2 short runs share 1 job"
    assert not packs.words(["long"])


def test_the_demo_is_a_few_jobs_and_no_pack_is_made_where_nobody_wants_any():
    jobs = Jobs.load({"studies": "all"}, REPOSITORY)
    assert len(set(jobs.packs(8).of.values())) <= len(jobs.runs) / 10
    assert len(jobs.packs(8).of) > 0.9 * len(jobs.runs)
    assert jobs.packs(8).of == Jobs.load({"studies": "all"}, REPOSITORY).packs(8).of
    assert not Jobs.load({"studies": "all", "pack_minutes": 0}, REPOSITORY).packs(8).of
