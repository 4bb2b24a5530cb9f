"""Which GPUs there are, and the locks by which trainings take them."""

import os
import signal
import time

import pytest

from moelaws.gpus.listing import Gpu, held, list_gpus
from moelaws.spec.errors import UserError
from nvidia_smi import nvidia_smi

EIGHT = [f"{i}, GPU-{i}a7e-11, NVIDIA H100 80GB HBM3, 81559, {4 + 9000 * i}, 0" for i in range(8)]


@pytest.fixture(autouse=True)
def eight(tmp_path, monkeypatch):
    nvidia_smi(tmp_path / "bin", EIGHT)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def listed(monkeypatch, variable, chosen):
    """Lists GPUs with CUDA_VISIBLE_DEVICES set to ``variable``, or unset for None."""
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    return [gpu.index for gpu in list_gpus(chosen)]


def test_a_line_is_a_gpu():
    first, second, *_ = list_gpus()
    assert first == Gpu(0, "GPU-0a7e-11", "NVIDIA H100 80GB HBM3", 81559 * 2**20, 4 * 2**20, 0)
    assert (first.is_used, second.is_used) == (False, True)
    assert len(list_gpus()) == 8


def test_numbers_that_the_driver_does_not_tell_are_no_use(tmp_path):
    nvidia_smi(tmp_path / "bin", ["0, GPU-0, NVIDIA GB10, [N/A], [N/A], [N/A]"])
    assert list_gpus() == (Gpu(0, "GPU-0", "NVIDIA GB10", 0, 0, 0),)
    assert not list_gpus()[0].is_used


@pytest.mark.parametrize(
    ("variable", "chosen", "expected"),
    [
        (None, (2, 0), [0, 2]),
        ("3,1", "all", [3, 1]),
        ("GPU-5a7e-11", "all", [5]),
        ("GPU-5a", "all", [5]),
        ("1,3", (3,), [3]),
    ],
)
def test_some_of_them(monkeypatch, variable, chosen, expected):
    assert listed(monkeypatch, variable, chosen) == expected


@pytest.mark.parametrize(
    ("variable", "chosen", "words"),
    [
        (None, (0, 8), "gpus names 8, but the GPUs that can be used are 0, 1, 2, 3, 4, 5, 6, 7"),
        ("1,3", (0,), "gpus names 0, but the GPUs that can be used are 1, 3"),
        ("", "all", "no GPU was found"),
        ("-1", "all", "no GPU was found"),
        ("MIG-77", "all", "CUDA_VISIBLE_DEVICES names MIG-77, which nvidia-smi does not list"),
    ],
)
def test_those_that_are_not_there_are_named(monkeypatch, variable, chosen, words):
    with pytest.raises(UserError, match=words):
        listed(monkeypatch, variable, chosen)


def test_a_machine_without_the_driver_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="nvidia-smi, which comes with NVIDIA's driver, is not on"):
        list_gpus()


GPUS = [Gpu(i, f"GPU-{i}", "H100", 8e10, 0.0, 0.0) for i in range(3)]


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


@pytest.mark.parametrize(
    "put",
    [
        lambda place, elsewhere: place.symlink_to(elsewhere, target_is_directory=True),
        lambda place, _: os.mkfifo(place),
        lambda place, _: place.touch(),
        lambda place, _: (place.mkdir(), place.chmod(0o777)),
        pytest.param(
            lambda place, _: (place.mkdir(0o700), os.chown(place, 12345, -1)),
            marks=pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away"),
        ),
    ],
    ids=["link", "fifo", "file", "open to all", "of another user"],
)
def test_what_others_put_in_the_place_of_the_locks_is_told(put, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    put(tmp_path / LOCKS, elsewhere)
    with (
        pytest.raises(UserError, match=f"{LOCKS}, .* is no folder that is yours alone"),
        held(GPUS, 1, pytest.fail),
    ):
        pass
    assert not list(elsewhere.iterdir())


def test_a_folder_may_have_the_set_group_id_bit(tmp_path):
    """It comes from the scratch folder around it, and opens the folder to nobody."""
    (tmp_path / LOCKS).mkdir(mode=0o700)
    (tmp_path / LOCKS).chmod(0o2700)
    with held(GPUS, 1, pytest.fail) as (gpu,):
        assert gpu in GPUS


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
