"""Tags and notes beside a run's record, and lines of progress."""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from command_line import call, printed
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.files.lock import acquire
from moelaws.records import progress
from moelaws.records.names import find_record
from moelaws.records.progress import reporting
from moelaws.records.runs import Annotations, all_records, annotate, annotations_of, retry
from moelaws.spec.errors import UserError


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for run in ("aa1", "aa2", "bb1"):
        write_json(Results().summary(run), {"status": "diverged"})
    return Results()


def test_tags_and_a_note_are_listed_selected_and_removed(results):
    printed("tag", "aa1", "bb", "kind=a = b", "baseline=yes")
    printed("note", "aa1", "Ein Knoten\nfiel aus: <b>&[red]")
    assert annotations_of(results, "aa1").tags == {"baseline": "yes", "kind": "a = b"}
    assert "baseline=yes, kind=a = b" in printed("runs")
    assert "Ein Knoten fiel aus: <b>&[red]" in printed("runs", "aa1")
    selected = json.loads(printed("runs", "--where", "tags.kind == 'a = b'", "--json"))
    assert [run["run_id"] for run in selected] == ["aa1", "bb1"]
    assert json.loads(printed("show", "aa1", "--json"))["tags"]["kind"] == "a = b"
    assert "tags.kind" in printed("diff", "aa1", "aa2")
    printed("tag", "aa1", "kind=", "baseline=")
    printed("note", "aa1", "")
    assert annotations_of(results, "aa1") == Annotations()
    assert not results.annotations("aa1").exists()


@pytest.mark.parametrize("tag", ["=x", "two words=x", "-x=1", "ä=1"])
def test_a_name_that_no_tag_can_have_is_refused(results, tag):
    with pytest.raises(UserError, match="the name of a tag begins with a letter"):
        call("tag", "--", "aa1", tag)
    assert annotations_of(results, "aa1") == Annotations()


def test_one_unknown_run_among_several_changes_none(results):
    with pytest.raises(UserError, match="no such run"):
        call("tag", "aa1", "zz", "x=1")
    assert annotations_of(results, "aa1") == Annotations()


def test_a_run_may_be_tagged_while_it_is_trained_and_keeps_its_tags_when_asked_for_again(results):
    with acquire(results.run("aa1")):
        annotate(results, "aa1", {"x": "1"})
    retry(results, find_record(results, "aa1"))
    assert annotations_of(results, "aa1").tags == {"x": "1"}


def test_tags_that_are_written_at_once_are_all_kept(results):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: annotate(results, "aa1", {f"t{i}": "x"}), range(40)))
    assert len(annotations_of(results, "aa1").tags) == 40


def test_a_damaged_file_of_tags_is_told_and_damages_no_run(results):
    annotate(results, "aa1", {"x": "1"})
    path = results.annotations("aa1")
    path.write_text(path.read_text().replace('"1"', '"2"'))
    record = all_records(results)[0]
    assert record.status == "diverged"
    assert "the tags and the note of a run is damaged" in record.annotations.note
    with pytest.raises(UserError, match="delete it"):
        annotate(results, "aa1", {"y": "1"})


def test_a_log_gets_a_line_every_five_seconds_and_none_of_the_work_done_before(monkeypatch, capsys):
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", clock)
    with reporting() as report:
        for step in range(10, 24):
            report("run", step, 100, f"step {step}/100", tokens=512 * step)
            clock.now += 1.0
    assert capsys.readouterr().err.splitlines() == [
        "run: step 15/100, 512 tokens/s, 85 s left",
        "run: step 20/100, 512 tokens/s, 80 s left",
    ]
