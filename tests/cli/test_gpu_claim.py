"""The GPU that a training takes, beside another trainer of the same run."""

import os
import signal
import sys
import time

import pytest

from moelaws.cli.gpu import Claim, on_gpus
from moelaws.gpus.listing import list_gpus
from moelaws.gpus.slots import FOLDER, SHARES, taken
from moelaws.records.lock import acquire
from nvidia_smi import nvidia_smi


def test_no_gpu_idles_while_its_run_is_trained_by_another(tmp_path, monkeypatch):
    """As after a kill -9 of Snakemake, whose trainings go on while a new call starts them again."""
    nvidia_smi(tmp_path / "bin", ["0, GPU-0, NVIDIA H100, 81559, 0, 0"])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv(FOLDER, str(tmp_path / "slots"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    record, log, seen = tmp_path / "run", tmp_path / "log", tmp_path / "seen"
    with acquire(record):
        child = os.fork()
        if child == 0:
            sys.stderr = log.open("w", buffering=1)
            with on_gpus(Claim("all", SHARES), 1, "a run", record):
                seen.write_text(os.environ["CUDA_VISIBLE_DEVICES"])
            os._exit(0)
        try:
            until(lambda: log.exists() and f"process {os.getpid()}" in log.read_text())
            with taken(list_gpus, SHARES, pytest.fail):
                assert not seen.exists()
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
    assert os.waitpid(child, 0)[1] == 0
    assert seen.read_text() == "GPU-0"
    assert "on GPU 0: NVIDIA H100 (GPU-0)" in log.read_text()


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
