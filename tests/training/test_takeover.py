"""A trainer whose lock is broken while it is away: it writes nothing and ends with the run done."""

import os
import signal

import pytest

from moelaws.files.atomic import read_json
from moelaws.spec.errors import UserError
from moelaws.training import checkpoint
from moelaws.training import job as module
from moelaws.training.signals import Stopped


@pytest.fixture
def away(monkeypatch):
    """Makes something happen once, after the training and before the measurement."""

    def during_absence(happens):
        evaluate = module.evaluate

        def once(*args):
            monkeypatch.setattr(module, "evaluate", evaluate)
            happens()
            return evaluate(*args)

        monkeypatch.setattr(module, "evaluate", once)

    return during_absence


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_where_the_other_died_too_the_newest_checkpoint_is_continued(
    configure, train, results, away, tmp_path
):
    config = configure()
    whole = train(config, out=tmp_path / "whole")
    folder = results.run(config.run_id)
    away((folder / "lock").unlink)
    lines = []
    summary = train(config, checkpoint_seconds=0.0, log=lines.append)
    assert summary.loss == whole.loss
    assert any(f"resumed at step {config.steps}/" in line for line in lines)
    assert not (folder / "lock").exists()
    assert len(read_json(folder / "provenance.json")["resumed_from"]) == 1


@pytest.mark.parametrize(("finished", "asked"), [(True, False), (True, True), (False, True)])
def test_what_the_other_wrote_is_left_alone(configure, train, results, away, finished, asked):
    """Also by a trainer that is ``asked`` to stop; what the other ``finished`` is returned."""
    config, others, lines = configure(), {}, []
    folder = results.run(config.run_id)

    def taken_over():
        (folder / "lock").unlink()
        if finished:
            others["summary"] = train(config)
        others["files"] = contents(results.root)
        if asked:
            os.kill(os.getpid(), signal.SIGTERM)

    away(taken_over)
    if finished:
        assert train(config, log=lines.append) == others["summary"]
    else:
        with pytest.raises(Stopped):
            train(config, log=lines.append)
    assert contents(results.root) == others["files"]
    assert any("took this run over" in line for line in lines)


def test_a_write_that_fails_because_of_the_other_is_no_failure(
    configure, train, results, away, monkeypatch
):
    """The other one clears half-written checkpoints, this one's among them."""
    config = configure()
    folder = results.run(config.run_id)
    save, others = checkpoint.save, {}

    def cleared(path, identity, state, ranks):
        monkeypatch.setattr(checkpoint, "save", save)
        (folder / "lock").unlink()
        others["summary"] = train(config)
        raise UserError(f"{path}: cannot be written: No such file or directory")

    monkeypatch.setattr(checkpoint, "save", cleared)
    summary = train(config, checkpoint_seconds=0.0)
    assert summary == others["summary"]
