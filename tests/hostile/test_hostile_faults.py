"""A disk that fails, odd times and odd folders: one clear line, and nothing is lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_outcome import CASES, TALLY, Outcome

from moelaws.files.leftovers import temporaries
from repository import REPOSITORY

pytestmark = pytest.mark.slow

# Command -> the file that it writes again
MADE = {
    "make derived sparsity optima --out {}": "results/demo/derived/sparsity/optima.parquet",
    "make runs sparsity --out {}": "results/demo/tables/sparsity.parquet",
    "explore --out {}": "results/demo/explore.html",
    "claims results/demo/claims/sparsity.json --out {}": "results/demo/claims.md",
    "archive --force --to {}": "results/sweep.zip",
}
DATED = (".zip", ".html")  # whose bytes are others each time


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc to compile what lets calls fail")
    path = tmp_path_factory.mktemp("faults") / "faults.so"
    source = REPOSITORY / "tests/hostile/faults.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source, "-ldl"], check=True)
    return path


def ended(swept, words, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "moelaws", *words],
        cwd=swept.root,
        env={**swept.environment, **environment},
        capture_output=True,
        text=True,
    )
    return Outcome(done.returncode, "", done.stderr)


def judged(case, outcome):
    kind = outcome.kind("")
    TALLY["faults"] += 1
    TALLY[kind] += 1
    assert kind in ("same", "answered", "refused"), f"{case}: {kind}\n{outcome.stderr}"
    return kind


@pytest.mark.parametrize("command", MADE)
def test_a_call_that_fails_is_one_line_and_loses_nothing(swept, library, command):
    """Each call of its kind fails once, until a command has no further one."""
    out = swept.root / MADE[command]
    words = command.format(out.relative_to(swept.root)).split()
    assert ended(swept, words).code == 0
    whole = out.read_bytes()
    for call in ("rename", "write", "unlink", "fsync"):
        for number in range(1 if CASES < 100 else 8):
            about = {
                "MOELAWS_FAULT": f"{call}:{number}",
                "MOELAWS_FAULT_BELOW": "results/",
            }
            outcome = ended(swept, words, LD_PRELOAD=str(library), **about)
            judged(f"{command} {call}:{number}", outcome)
            assert outcome.code == 0 or out.suffix in DATED or out.read_bytes() == whole
            assert ended(swept, words).code == 0
            assert out.suffix in DATED or out.read_bytes() == whole
            assert temporaries(out.parent) == []
            if outcome.code == 0:  # there was no such call
                break


def test_a_file_that_cannot_be_replaced_stays(swept):
    """Root may write everywhere, so a folder stands in the file's way."""
    for command, name in MADE.items():
        out = swept.root / name
        if not out.exists():
            continue
        data = out.read_bytes()
        out.unlink()
        (out / "in").mkdir(parents=True)
        judged(f"{command} onto a folder", ended(swept, command.format(name).split()))
        assert (out / "in").is_dir()
        assert temporaries(out.parent) == []
        shutil.rmtree(out)
        out.write_bytes(data)


@pytest.mark.parametrize("years", [-40, 40])
def test_files_of_another_time_are_read_as_any(swept, years):
    """A clock that was wrong when the results were written, or is now, changes no answer."""
    paths = [path for path in (swept.root / "results").rglob("*") if path.is_file()]
    times = {path: path.stat() for path in paths}
    try:
        for path, stat in times.items():
            shifted = stat.st_mtime_ns + years * 365 * 86_400 * 10**9
            os.utime(path, ns=(shifted, shifted))
        for words in (["verify"], ["query", "SELECT count(*) FROM runs"], ["runs"]):
            judged(f"{words} {years} years away", ended(swept, words))
    finally:
        for path, stat in times.items():
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("name", ["with space", "quote'd", "é\u0301", "a#b", "dollar$HOME", "%s{}"])
def test_a_folder_may_have_any_name(swept, tmp_path, name):
    root = Path(shutil.copytree(swept.root, tmp_path / name, symlinks=True))
    here = type(swept)(root)
    for words in (["verify"], ["explore"], ["make", "derived", "sparsity", "optima"]):
        judged(f"{words} in {name}", ended(here, words))
    old = os.umask(0o777)
    try:
        judged(f"umask 777 in {name}", ended(here, ["explore", "--out", "umask.html"]))
    finally:
        os.umask(old)
