"""Which runs share a job of a cluster: a matter of the sweeps alone."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from moelaws.workflow.jobs import Jobs
from moelaws.workflow.packs import MOST, SHORT, START, Packs
from moelaws.workflow.requests import Requests
from repository import REPOSITORY

RUNS = st.dictionaries(st.integers(0, 10**6).map(str), st.floats(0, 2 * SHORT), max_size=300)


@given(RUNS, st.floats(1, 1e4))
def test_a_pack_is_of_short_runs_of_the_same_studies_up_to_its_length(seconds, longest):
    runs = sorted(seconds)
    sweeps = {"a": runs[: 2 * len(runs) // 3], "b": runs[len(runs) // 3 :]}
    packs = Packs.made_of(sweeps, seconds.__getitem__, longest)
    members = defaultdict(list)
    for run, pack in packs.of.items():
        members[pack].append(run)
    for of_pack in members.values():
        assert 2 <= len(of_pack) <= MOST
        assert max(seconds[run] for run in of_pack) < SHORT
        assert len({tuple(run in sweep for sweep in sweeps.values()) for run in of_pack}) == 1
        assert sum(START + seconds[run] for run in of_pack) <= longest * (1 + 1e-9)


def test_a_pack_asks_once_for_what_a_job_needs_once():
    """Also where only some of its runs are needed: the others are done, or not asked for."""
    runs = [*"abcdef", "long"]
    packs = Packs.made_of({"a": runs}, {**dict.fromkeys(runs, 1.0), "long": SHORT}.get, 10)
    assert packs.of == {**dict.fromkeys("abc", "pack_1"), **dict.fromkeys("def", "pack_2")}
    assert packs.firsts(runs) == {"a", "d"}
    assert packs.firsts({"c", "e", "f", "long"}) == {"c", "e"}
    assert packs.words("bcd") == "3 short runs share 2 jobs"
    assert packs.words("bc") == "2 short runs share one job"
    assert not packs.words(["long"])


def test_the_demo_is_a_few_jobs_and_no_pack_is_made_where_nobody_wants_any():
    def packs(**keys):
        jobs = Jobs.load({"studies": "all"} | keys, REPOSITORY)
        return jobs.packs(Requests(jobs.project, jobs.runs), 8).of, len(jobs.runs)

    packed, runs = packs()
    assert len(set(packed.values())) <= runs / 10
    assert len(packed) > 0.9 * runs
    assert packs()[0] == packed
    assert not packs(pack_minutes=0)[0]
