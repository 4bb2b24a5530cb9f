"""The environments of MegaBlocks differ from the tested one in what they must, and nothing else."""

from repository import REPOSITORY


def pins(name):
    lines = (REPOSITORY / "envs" / name).read_text().splitlines()
    return {line.partition(" #")[0].strip() for line in lines if line and not line.startswith("#")}


def test_the_gpu_environment_is_the_tested_one_but_for_torch():
    cpu, gpu = pins("cpu.lock"), pins("gpu.lock")
    assert {pin.split("==")[0] for pin in cpu - gpu} == {"torch", "setuptools"}
    others = {pin.split("==")[0] for pin in gpu - cpu}
    assert {name for name in others if not name.startswith("nvidia-")} == {
        "torch", "setuptools", "triton",
    }  # fmt: skip
    assert "torch==2.7.0" in gpu  # the release that MegaBlocks 0.10.0 asks for
