"""Shares of GPUs between real processes, which end as processes do: well, stopped and killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter

import pytest

from moelaws.gpus import slots
from moelaws.gpus.listing import Gpu
from moelaws.gpus.slots import FOLDER, SHARES, taken
from moelaws.spec.errors import UserError
from moelaws.spec.project import PARTS


def gpus(number, **changes):
    values = {"memory": 8e10, "used": 0.0, "busy": 0.0} | changes
    return [Gpu(i, f"GPU-{i}", "H100", **values) for i in range(number)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "slots"))
    monkeypatch.setattr(slots, "_LOOK", 0.01)
    monkeypatch.setattr(slots, "_LIST", 0.05)
    return tmp_path / "slots"


@pytest.fixture
def trainer(tmp_path):
    """Starts a process that takes shares, for ``seconds`` or until it is killed.

    Processes write `+ GPU SHARES` and `- GPU SHARES` to one file, in their order.
    """
    children = set()

    def start(listed, shares, seconds=60.0, name="", number=1):
        child = os.fork()
        if child:
            children.add(child)
            return child
        try:

            def say(line):
                os.write(journal, f"{line}\n".encode())

            journal = os.open(tmp_path / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            waits = f"? waits{name} {shares}"
            with taken(lambda: listed, shares, lambda line: say(waits), number) as mine:
                names = "+".join(gpu.uuid for gpu in mine)
                say(f"+ {names}{name} {shares}")
                time.sleep(seconds)
                say(f"- {names}{name} {shares}")
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)

    start.journal = lambda: _lines(tmp_path / "journal")
    yield start
    for child in children:
        _end(child)


def _lines(path):
    return path.read_text().splitlines() if path.exists() else []


def _end(child, with_signal=signal.SIGKILL):
    try:
        os.kill(child, with_signal)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def until(condition):
    deadline = time.monotonic() + 60
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return value


def exit_code(child):
    def status():
        pid, code = os.waitpid(child, os.WNOHANG)
        return pid and [code]

    return os.waitstatus_to_exitcode(until(status)[0])


@pytest.mark.parametrize("runs_per_gpu", [1, 4])
def test_trainers_never_hold_more_than_there_is_and_all_get_their_turn(trainer, runs_per_gpu):
    children = [trainer(gpus(2), SHARES // runs_per_gpu, 0.05) for _ in range(12)]
    assert [exit_code(child) for child in children] == [0] * 12
    held, most = Counter(), Counter()
    for line in trainer.journal():
        sign, uuid, shares = line.split()
        if sign != "?":
            held[uuid] += int(sign + shares)
            most[uuid] = max(most[uuid], held[uuid])
    assert most.keys() == {"GPU-0", "GPU-1"}
    assert max(most.values()) <= SHARES
    assert set(held.values()) == {0}


def test_a_killed_trainer_and_a_killed_waiter_leave_nothing(trainer):
    holder = trainer(gpus(1), SHARES)
    until(lambda: len(trainer.journal()) == 1)
    waiter = trainer(gpus(1), SHARES)
    until(lambda: len(trainer.journal()) == 2)
    _end(waiter)
    _end(holder)
    with taken(lambda: gpus(1), SHARES, pytest.fail) as (gpu,):
        assert gpu.index == 0


def test_small_runs_that_keep_coming_do_not_starve_a_large_one(trainer):
    """They may use the other GPU meanwhile, but not the one that empties for it."""
    small = []
    for i in range(8):  # one after the other, so that the first is on the first GPU
        small.append(trainer(gpus(2), 6))
        until(lambda: len(trainer.journal()) > i)  # noqa: B023
    large = trainer(gpus(2), SHARES, 0.0, "large")
    until(lambda: trainer.journal()[-1].startswith("? waitslarge"))
    comers = [trainer(gpus(2), 6, name=f"late{i}") for i in range(2)]
    until(lambda: len(trainer.journal()) == 11)
    for child in small:  # one place after the other becomes free on both GPUs
        _end(child)
    assert exit_code(large) == 0
    lines = trainer.journal()
    assert "- GPU-0large 24" in lines
    late = {line.split()[1] for line in lines[: lines.index("- GPU-0large 24")] if "+" in line}
    assert {word[:5] for word in late if "late" in word} <= {"GPU-1"}
    until(lambda: sum("+" in line and "late" in line for line in trainer.journal()) == 2)
    assert comers


def test_a_run_on_several_gpus_takes_all_at_once_and_does_not_starve(trainer):
    """It holds no GPU while it waits for a second one, and runs that keep coming leave it two."""
    with pytest.raises(UserError, match="4 GPUs are asked for, and there are 3"):
        taken(lambda: gpus(3), SHARES, pytest.fail, 4).__enter__()
    small = [trainer(gpus(3), SHARES) for _ in range(3)]
    until(lambda: len(trainer.journal()) == 3)
    large = trainer(gpus(3), SHARES, 0.0, "large", number=2)
    until(lambda: trainer.journal()[-1].startswith("? waitslarge"))
    comers = [trainer(gpus(3), SHARES, 0.2, f"late{i}") for i in range(4)]
    until(lambda: len(trainer.journal()) == 8)
    for child in small:
        _end(child)
        time.sleep(0.05)
    assert [exit_code(child) for child in (large, *comers)] == [0] * 5
    (began,) = [line for line in trainer.journal() if line[0] == "+" and "large" in line]
    assert began.count("GPU-") == 2
    assert sum(line[0] == "+" and "late" in line for line in trainer.journal()) == 4


def test_who_is_suspended_while_it_waits_holds_up_one_gpu_at_the_most(trainer, monkeypatch):
    monkeypatch.setattr(slots, "_LOOK", 30.0)
    holders = [trainer(gpus(2), SHARES) for _ in range(2)]
    until(lambda: len(trainer.journal()) == 2)
    waiter = trainer(gpus(2), SHARES)
    until(lambda: len(trainer.journal()) == 3)
    os.kill(waiter, signal.SIGSTOP)
    for child in holders:
        _end(child)
    with taken(lambda: gpus(2), SHARES, pytest.fail) as (gpu,):
        assert gpu.index == 1


def test_gpus_that_others_use_are_skipped_until_they_are_free():
    used, free = gpus(1, used=4e10), gpus(1)
    with taken(lambda: used + gpus(2)[1:], 6, pytest.fail) as (gpu,):
        assert gpu.index == 1
    lists, said = iter([used, gpus(1, busy=0.9)]), []
    with taken(lambda: next(lists, free), SHARES, said.append) as (gpu,):
        assert gpu.index == 0
    assert said == ["waiting for a GPU: 0 (40 of 80 GB in use)"]


def test_what_a_run_of_ours_uses_is_shared(trainer):
    trainer(gpus(1), 6)
    until(lambda: trainer.journal())
    with taken(lambda: gpus(1, used=4e10), 6, pytest.fail) as (gpu,):
        assert gpu.index == 0


def test_the_emptiest_gpu_is_taken():
    with (
        taken(lambda: gpus(3), 6, pytest.fail) as (first,),
        taken(lambda: gpus(3), 6, pytest.fail) as (second,),
        taken(lambda: gpus(3), SHARES, pytest.fail) as (third,),
    ):
        assert [first.index, second.index, third.index] == [0, 1, 2]


def test_all_users_of_the_machine_can_use_the_locks(folder):
    with taken(lambda: gpus(1), SHARES, pytest.fail):
        assert folder.stat().st_mode & 0o777 == 0o777
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o666}


def test_a_folder_that_cannot_be_written_is_named(folder):
    folder.write_text("")
    words = "slots: the locks of this machine's GPUs cannot be kept"
    with pytest.raises(UserError, match=words), taken(lambda: gpus(1), SHARES, pytest.fail):
        pass


def test_runs_have_equal_parts_of_a_gpu():
    assert [n for n in range(1, SHARES + 1) if SHARES % n == 0] == list(PARTS)
