"""The lock of a run: one trainer at a time, whatever dies, wherever it ran."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from moelaws.files.lock import acquire, holder

HOLD = """
import sys, time
from pathlib import Path
from moelaws.files.lock import acquire
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


class Waits(Exception):  # noqa: N818, it is no error
    """Raised in place of waiting."""


def give_up(owner):
    raise Waits(owner)


def test_a_living_holder_is_named_and_waited_for(tmp_path, other_process):
    names = []

    def release(owner):
        names.append(owner)
        threading.Timer(0.6, other_process.kill).start()

    assert holder(tmp_path)["host"] == socket.gethostname()
    with acquire(tmp_path, release) as lock:
        assert lock.held()  # also while the dead one is a zombie, which nobody has waited for
    assert other_process.wait() == -signal.SIGKILL
    assert names == [f"{socket.gethostname()}, process {other_process.pid}"]


def test_a_killed_holder_of_this_node_is_replaced_at_once(tmp_path, other_process):
    os.kill(other_process.pid, signal.SIGKILL)
    other_process.wait()
    with acquire(tmp_path, give_up) as lock:
        assert lock.held()
    assert holder(tmp_path) == {}


def foreign_lock(folder, age):
    """A lock as another node would have left it, its last heartbeat ``age`` seconds ago."""
    path = folder / "lock"
    path.write_text(json.dumps({"token": "x", "host": "n7", "pid": 1, "process": ["b", "1"]}))
    then = time.time() - age
    os.utime(path, (then, then))


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path):
    folder = tmp_path / "trunk"

    def removed(who):
        shutil.rmtree(folder)

    with acquire(folder) as first, acquire(folder, on_wait=removed) as second:
        assert second.held()
        assert not first.held()


def test_another_nodes_lock_goes_by_its_heartbeat(tmp_path):
    foreign_lock(tmp_path, age=5)
    with pytest.raises(Waits, match="n7"), acquire(tmp_path, give_up, stale=60):
        pass
    for age in (61, -3600):  # a dead node's clock may have been ahead
        foreign_lock(tmp_path, age)
        with acquire(tmp_path, give_up, stale=60) as lock:
            assert lock.held()


@pytest.mark.parametrize(
    "content",
    [
        *("", "7", "{}", "[", '{"token": "x", "host": "n7"}', os.mkfifo, os.mkdir),
        '{"token": "x", "host": "n7", "pid": 99999999999999999999999, "process": ["b", "1"]}',
        '{"token": 5, "host": [], "pid": "x", "process": 1}',
    ],
)
def test_what_is_no_lock_is_nobodys(tmp_path, content):
    if callable(content):
        content(tmp_path / "lock")
    else:
        (tmp_path / "lock").write_text(content)
    assert holder(tmp_path) == {}
    with acquire(tmp_path, give_up, stale=60) as lock:
        assert lock.held()


def test_a_link_whose_reply_was_lost_is_held(tmp_path, monkeypatch):
    """NFS asks again then, and hears that the name is taken: by this trainer itself."""
    link = os.link

    def twice(draft, path):
        link(draft, path)
        link(draft, path)

    monkeypatch.setattr(os, "link", twice)
    with acquire(tmp_path, give_up) as lock:
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
