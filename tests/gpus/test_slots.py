"""GPUs between real processes: whoever holds one dies, and the next one has it."""

import os
import signal
import time

import pytest

from moelaws.gpus.listing import Gpu, held
from moelaws.spec.errors import UserError

GPUS = [Gpu(i, f"GPU-{i}", "H100", 8e10, 0.0, 0.0) for i in range(3)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_jobs_never_have_the_same_gpu():
    with held(GPUS, 2, pytest.fail) as two, held(GPUS, 1, pytest.fail) as one:
        assert {gpu.index for gpu in (*two, *one)} == {0, 1, 2}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_gpu_is_free_as_soon_as_its_process_is_dead(end):
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        with held(GPUS, 3, pytest.fail):
            os.write(writes, b"held")
            time.sleep(60)
        os._exit(0)
    assert os.read(reads, 4) == b"held"
    waits = []

    def kill(line):
        waits.append(line)
        os.kill(child, end)

    with held(GPUS, 1, kill) as (gpu,):
        assert gpu in GPUS
    os.waitpid(child, 0)
    assert waits == ["waiting for 1 of the GPUs 0, 1, 2, on which other jobs train"]


def test_who_finds_too_few_holds_none_meanwhile():
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reads, 4)
        with held(GPUS, 3, lambda line: None):
            os._exit(0)
    with held(GPUS, 1, pytest.fail):
        os.write(writes, b"held")
        time.sleep(0.2)
        with held(GPUS, 2, lambda line: None):  # the two that the child cannot use
            pass
    assert os.waitpid(child, 0)[1] == 0


def test_more_than_there_are_is_refused():
    with pytest.raises(UserError, match="4 GPUs are asked for, and 3 can be used"):
        held(GPUS, 4, pytest.fail).__enter__()


LOCKS = f"moelaws-gpus-{os.getuid()}"


def link(place, elsewhere):
    place.symlink_to(elsewhere, target_is_directory=True)


@pytest.mark.parametrize(
    "put",
    [
        link,
        lambda place, _: os.mkfifo(place),
        lambda place, _: place.touch(),
        lambda place, _: (place.mkdir(), place.chmod(0o777)),
    ],
    ids=["link", "fifo", "file", "open to all"],
)
def test_what_others_put_in_the_place_of_the_locks_is_told(put, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    put(tmp_path / LOCKS, elsewhere)
    with (
        pytest.raises(UserError, match=f"{LOCKS}, where locks of GPUs lie, is no folder"),
        held(GPUS, 1, pytest.fail),
    ):
        pass
    assert not list(elsewhere.iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder to another user")
def test_a_folder_of_another_user_holds_no_locks(tmp_path):
    (tmp_path / LOCKS).mkdir(mode=0o700)
    os.chown(tmp_path / LOCKS, 12345, -1)
    with pytest.raises(UserError, match="no folder that is yours alone"), held(GPUS, 1, print):
        pass


def test_a_lock_is_no_link_and_a_pipe_hangs_nobody(tmp_path):
    with held(GPUS, 1, pytest.fail):
        pass
    lock = tmp_path / LOCKS / GPUS[0].uuid
    lock.unlink()
    os.mkfifo(lock)
    with held(GPUS, 1, pytest.fail) as gpus:
        assert gpus == (GPUS[0],)
    lock.unlink()
    lock.symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match=GPUS[0].uuid), held(GPUS, 1, pytest.fail):
        pass
    assert not (tmp_path / "made").exists()
