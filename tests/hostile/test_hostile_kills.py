"""Commands killed under Snakemake wherever they write, and a full disk: nothing is lost."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hostile_outcome import CASES, TALLY

from moelaws.files.leftovers import temporaries
from repository import REPOSITORY

pytestmark = pytest.mark.slow

# Command -> the file that is made again, and the files that are written with it.
MADE = {
    "make fits": "results/demo/fits/sparsity/chinchilla.json",
    "make pictures": "results/demo/figures/sparsity/F7.png",
    "make derived": "results/demo/derived/sparsity/optima.parquet",
    "make runs": "results/demo/tables/sparsity.parquet",
    "make claims": "results/demo/claims/sparsity.json",
    "claims": "results/demo/claims.md",
    "make contests": "results/demo/contests/sparsity/laws.json",
    "contests": "results/demo/laws.md",
    "cover": "results/demo/report.rst",
}


def content(root):
    """The bytes of all that stands below a tier, but logs and the report's own page."""
    folder = root / "results/demo"
    paths = [p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".log", ".html")]
    return {str(p.relative_to(folder)): p.read_bytes() for p in paths}


def kept(root, before):
    """Counts the files that are not what they were before, and fails if there are any."""
    after = content(root)
    lost = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    TALLY["lost"] += len(lost)
    assert not lost


def make(swept, target, **environment):
    """One call of Snakemake for ``target``; returns its exit code."""
    path = f"{REPOSITORY / 'tests/killer'}:{swept.root / 'src'}"
    if target == MADE["make pictures"]:  # a picture that is up to date is copied, not drawn
        (swept.root / target).unlink(missing_ok=True)
    done = subprocess.run(
        swept.command("--rerun-incomplete", "--force", target),
        cwd=swept.root,
        env={**swept.environment, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode


@pytest.mark.parametrize("command", ["make fits", "make pictures"] if CASES < 100 else MADE)
def test_kills(swept, command):
    before = content(swept.root)
    for point in range(1 if CASES < 100 else 12):
        killed = make(swept, MADE[command], MOELAWS_KILL=f"{command}:{point}") != 0
        TALLY["kills" if killed else "ended before the kill"] += 1
        assert make(swept, MADE[command]) == 0
        kept(swept.root, before)
        if not killed:
            break
    folders = {Path(swept.root / target).parent for target in MADE.values()}
    assert [path for folder in folders for path in temporaries(folder)] == []


@pytest.mark.parametrize("command", list(MADE)[: 1 if CASES < 100 else 3])
def test_a_full_disk(swept, command):
    """No file of the command may grow beyond 1 kB, as where the disk has no room."""
    before = content(swept.root)
    assert make(swept, MADE[command], MOELAWS_DISK="1000") != 0
    TALLY["full disks"] += 1
    folder = swept.root / "results/logs/demo"
    assert any("cannot be written" in log.read_text() for log in folder.rglob("*.log"))
    assert make(swept, MADE[command]) == 0
    kept(swept.root, before)


NAMESPACE = ("unshare", "--map-root-user", "--mount")


def test_a_disk_that_is_full_for_snakemake_too(swept, tmp_path):
    """Whoever writes when the room ends, Snakemake or a job: with room, the same is made."""
    mounted = [*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(mounted).returncode != 0:
        pytest.skip("no disk in memory can be mounted here")
    before = content(swept.root)
    words = swept.command("--rerun-incomplete", "--force", *MADE.values())
    rooms = (100,) if CASES < 100 else range(0, 400, 50)
    for room in rooms:
        out = tmp_path / str(room)
        out.mkdir()
        script = REPOSITORY / "tests/hostile/full_disk.sh"
        done = subprocess.run(
            [*NAMESPACE, script, swept.root, str(room), out, *words], env=swept.environment
        )
        assert done.returncode == 0, (out / "second.log").read_text()
        TALLY["full disks"] += (out / "first").read_text() != "0\n"
        kept(out, before)
        assert not list((out / "results").rglob(".*.tmp*"))
