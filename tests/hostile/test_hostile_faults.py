"""A disk that fails, odd clocks, times and folders: one clear line, and nothing is lost."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from forks import Forks
from hostile_outcome import cases, chance_of, command, judged, outcome
from phases import PHASES, TIER, Phase, content, left_over

from full_disk import files_of_at_most
from repository import REPOSITORY

pytestmark = pytest.mark.slow
CALLS = ("rename", "write", "open", "read", "unlink", "link", "mkdir", "fsync")
FEW = ("derive", "aggregate", "train", "explore", "archive")  # in the slow suite
YEAR = 365 * 86_400


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc to compile what lets calls fail")
    path = tmp_path_factory.mktemp("faults") / "faults.so"
    source = REPOSITORY / "tests/hostile/faults.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source, "-ldl"], check=True)
    forks = Forks(path)
    yield forks
    forks.process.communicate()


@pytest.fixture
def whole(swept):
    """Makes a phase's files once more; returns it and all content."""

    def made(name):
        phase = Phase(swept.root, name)
        phase.clear()
        done = outcome(phase.work)
        assert done.code == 0, done.stderr
        return phase, content(swept.root)

    return made


@pytest.mark.parametrize("name", PHASES)
def test_a_call_that_fails_is_one_line_and_loses_nothing(swept, forks, whole, tmp_path, name):
    """Each kind of call fails, at one place after the other, until a command has no further one."""
    phase, before = whole(name)
    came, chance = tmp_path / "came", chance_of("fault", name)
    places = cases(int(name in FEW), 4)
    for call in CALLS if places > 1 else chance.sample(CALLS[:5], places):
        for number in range(places):
            code = chance.choice((errno.EIO, errno.ENOSPC))
            about = {"MOELAWS_FAULT": f"{call}:{number}:{code}", "MOELAWS_FAULT_BELOW": "results/"}
            phase.clear()
            left = content(swept.root)
            done = forks.ended(swept.root, phase.words, **about, MOELAWS_FAULT_CAME=str(came))
            if not came.exists():  # there was no such call
                break
            came.unlink()
            case = f"{name} {about['MOELAWS_FAULT']}"
            judged(case, done, None, "faults")
            after = content(swept.root)
            assert left.items() <= after.items(), case
            done = outcome(phase.work)
            assert done.code == 0, case + done.stderr
            assert content(swept.root) == before, case
            assert left_over(swept.root) == [], case


@pytest.mark.parametrize("name", PHASES)
def test_a_full_disk_odd_clocks_and_masks(swept, forks, whole, name):
    if not (few := name in FEW) and cases(0, 1) == 0:
        pytest.skip("make hostile takes it")
    phase, before = whole(name)
    chance = chance_of("circumstances", name)

    def small():
        with files_of_at_most(1000):  # as where the disk has no room
            phase.work()

    phase.clear()
    left = content(swept.root)
    judged(f"{name} without room", outcome(small), None, "full disks")
    assert left.items() <= content(swept.root).items()
    for _ in range(cases(few, 3)):
        seconds = chance.choice((-40 * YEAR, -90_000, 3_600, 40 * YEAR))
        jump = f"{seconds}:{chance.choice((0, 9, 99))}"
        phase.clear()
        judged(f"{name}, clock {jump}", forks.ended(swept.root, phase.words, MOELAWS_CLOCK=jump))
        assert content(swept.root) == before, jump
    for mask in (0o000, 0o077):
        phase.clear()
        done = outcome(lambda mask=mask: (os.umask(mask), phase.work()))
        assert judged(f"{name}, umask {mask:o}", done) == "answered"
        assert content(swept.root) == before, mask
    assert left_over(swept.root) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_who_may_only_read_hears_one_line_and_changes_nothing(swept):
    above = {path: path.stat().st_mode for path in swept.root.parents}
    before = content(swept.root)

    def as_nobody(work):
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        work()

    try:
        for path in above:
            path.chmod(0o755)
        for name in sorted(PHASES.keys() - {"train"}):  # tests/training/test_read_only.py
            work = Phase(swept.root, name).work
            judged(f"{name} as nobody", outcome(lambda work=work: as_nobody(work)))
            assert content(swept.root) == before, name
    finally:
        for path, mode in above.items():
            path.chmod(mode)


def test_a_file_that_cannot_be_replaced_stays(swept):
    """Root may write everywhere, so a folder stands in the file's way."""
    for name in ("derive", "aggregate", "explore", "claims", "archive"):
        phase = Phase(swept.root, name)
        out = swept.root / phase.words[-1]
        aside = out.rename(out.with_suffix(".aside")) if out.exists() else None
        (out / "in").mkdir(parents=True)
        judged(f"{name} onto a folder", outcome(phase.work))
        assert (out / "in").is_dir()
        assert left_over(swept.root) == []
        shutil.rmtree(out)
        if aside:
            aside.rename(out)


READING = (["verify"], ["query", "SELECT count(*) FROM runs"], ["runs"])


@pytest.mark.parametrize("years", [-40, 40])
def test_files_of_another_time_are_read_as_any(swept, years):
    """A clock that was wrong when the results were written, or is now, changes no answer."""
    answers = [outcome(command(swept.root, *words)).stdout for words in READING]
    for path in (swept.root / "results").rglob("*"):
        if path.is_file():
            shifted = path.stat().st_mtime_ns + years * YEAR * 10**9
            os.utime(path, ns=(shifted, shifted))
    for words, answer in zip(READING, answers, strict=True):
        ended = outcome(command(swept.root, *words))
        assert judged(f"{words} {years} years away", ended, answer) == "same"


NAMES = [
    *("with space", "quote'd", 'double"', "é\u0301 模型", "a#b", "dollar$HOME", "%s{}", "-rf"),
    *("new\nline", "back\\slash", "semi;colon", "*?["),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_may_have_any_name(swept, tmp_path, name):
    root = Path(shutil.copytree(swept.root, tmp_path / name, symlinks=True))
    for words in (*READING, ["explore"], ["make", "derived", "sparsity", "optima"]):
        judged(f"{words} in {name!r}", outcome(command(root, *words)))
    if name in NAMES[:1] or cases(0, 1):
        picture = root / TIER / "figures/sparsity/F7.png"
        before = picture.read_bytes()
        words, braces = ("--force", str(picture.relative_to(root))), "{" in name
        done = type(swept)(root).snakemake(*words, check=not braces)
        assert ("rename that file or folder" in done.stderr) == braces
        assert picture.read_bytes() == before
