"""What nvidia-smi says, and what is taken of it; a program of that name stands in for it."""

import pytest

from moelaws.gpus.listing import Gpu, list_gpus, mps_is_running
from moelaws.spec.errors import UserError
from nvidia_smi import nvidia_smi

EIGHT = [f"{i}, GPU-{i}a7e-11, NVIDIA H100 80GB HBM3, 81559, {4 + 9000 * i}, 0" for i in range(8)]


@pytest.fixture(autouse=True)
def eight(tmp_path, monkeypatch):
    nvidia_smi(tmp_path / "bin", EIGHT)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
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


def test_without_a_driver_the_message_says_what_is_missing(tmp_path, monkeypatch):
    nvidia_smi(tmp_path / "bin", [], "echo 'could not talk to the driver'; exit 9")
    with pytest.raises(UserError, match="cannot list the GPUs: could not talk to the driver"):
        list_gpus()
    nvidia_smi(tmp_path / "bin", ["No devices were found"])
    with pytest.raises(UserError, match="in an unknown form: 'No devices were found'"):
        list_gpus()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="nvidia-smi, which comes with NVIDIA's driver, is not on"):
        list_gpus()


def test_mps_runs_where_its_pipe_is(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert not mps_is_running()
    (tmp_path / "control").touch()
    assert mps_is_running()
