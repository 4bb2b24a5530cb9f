"""The lock of a run: one trainer at a time, whatever dies, wherever it ran."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from moelaws.records.lock import acquire, holder
from moelaws.spec.errors import UserError

HOLD = """
import sys, time
from pathlib import Path
from moelaws.records.lock import acquire
with acquire(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other_process(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_living_holder_is_waited_for_and_named(tmp_path, other_process):
    waited = []
    with (
        pytest.raises(UserError, match=f"process {other_process.pid}"),
        acquire(tmp_path, wait_seconds=0.6, on_wait=waited.append),
    ):
        pass
    assert len(waited) == 1
    assert holder(tmp_path)["host"] == socket.gethostname()


def test_a_killed_holder_of_this_node_is_replaced_at_once(tmp_path, other_process):
    os.kill(other_process.pid, signal.SIGKILL)
    other_process.wait()
    with acquire(tmp_path, wait_seconds=0) as lock:
        assert lock.held()
    assert holder(tmp_path) == {}


def foreign_lock(folder, age):
    """A lock as another node would have left it, its last heartbeat ``age`` seconds ago."""
    path = folder / "lock"
    path.write_text(json.dumps({"token": "x", "host": "n7", "pid": 1, "process": ["b", "1"]}))
    then = time.time() - age
    os.utime(path, (then, then))


def test_another_nodes_lock_goes_by_its_heartbeat(tmp_path):
    foreign_lock(tmp_path, age=5)
    with pytest.raises(UserError, match="n7"), acquire(tmp_path, wait_seconds=0, stale=60):
        pass
    foreign_lock(tmp_path, age=61)
    with acquire(tmp_path, wait_seconds=0, stale=60) as lock:
        assert lock.held()


def test_a_heartbeat_keeps_it_alive(tmp_path):
    with acquire(tmp_path, heartbeat=0.05) as lock:
        old = time.time() - 1000
        os.utime(lock.path, (old, old))
        deadline = time.monotonic() + 10
        while lock.path.stat().st_mtime == old and time.monotonic() < deadline:
            time.sleep(0.02)
        assert lock.path.stat().st_mtime > old


def test_a_broken_lock_is_not_given_back_by_its_old_owner(tmp_path):
    with acquire(tmp_path) as lock:
        lock.path.write_text(json.dumps({"token": "thief"}))
        assert not lock.held()
    assert json.loads((tmp_path / "lock").read_text()) == {"token": "thief"}


def test_of_many_that_break_a_stale_lock_one_at_a_time_holds_it(tmp_path):
    foreign_lock(tmp_path, age=1000)
    inside, most, errors = [], [], []

    def trainer():
        try:
            with acquire(tmp_path, stale=60, heartbeat=0.01):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.02)
                inside.pop()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=trainer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert most == [1] * 8
