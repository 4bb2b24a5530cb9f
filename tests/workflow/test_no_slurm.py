"""`snakemake --profile slurm` on a machine without Slurm ends at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from sweep_copy import Copy

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("missing", [("sbatch", "squeue", "sacct"), ("sacct",)])
def test_a_machine_without_slurm_is_told(tmp_path, missing):
    copy = Copy.of_repository(tmp_path / "copy")
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for path in Path(folder).iterdir():
            if path.name not in (*missing, "sinfo") and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    for name in {"sbatch", "squeue", "sacct"} - set(missing):
        if not (programs / name).exists():
            (programs / name).symlink_to("/bin/true")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--profile", "slurm", "--", "runs"],
        cwd=copy.root, env=copy.environment | {"PATH": str(programs)},
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"moelaws: {' and '.join(missing)} of Slurm cannot be found here; ")
    assert "Traceback" not in done.stderr
    assert not (copy.root / ".snakemake/locks").is_dir() or not any(
        (copy.root / ".snakemake/locks").iterdir()
    )
    assert not (copy.root / "results/runs").exists()
