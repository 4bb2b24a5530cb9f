"""SIGKILL at a random moment of every phase: nothing is lost, and the same is made again."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from hostile_outcome import SEED, TALLY, cases, chance_of, outcome
from phases import PHASES, TIER, Phase, content, left_over

from repository import REPOSITORY

pytestmark = pytest.mark.slow
# Phase -> kills of a thousand cases; the few of the slow suite
KILLS = dict.fromkeys(PHASES, 12) | {"train": 24, "fit": 18, "corpus": 18, "contest": 4}
FEW = ("train", "fit", "figure", "archive")


def lost(before, after, about):
    """Fails if what was there is another now, or gone."""
    names = [name for name, was in before.items() if after.get(name) != was]
    TALLY["lost"] += len(names)
    assert names == [], about


@pytest.mark.parametrize("name", PHASES)
def test_a_phase_killed_at_a_random_moment(swept, name):
    root, phase, chance = swept.root, Phase(swept.root, name), chance_of("kill", name)
    phase.clear()
    began = time.monotonic()
    done = outcome(phase.work)
    took = time.monotonic() - began
    assert done.code == 0, done.stderr
    whole = content(root)
    for number in range(cases(int(name in FEW), KILLS[name])):
        moment, alone = chance.uniform(0, took), chance.random() < 0.5
        about = f"{name}, case {number} of seed {SEED}: killed after {moment:.3f} s, {alone=}"
        phase.clear()
        before = content(root)
        killed = outcome(phase.work, moment, alone).code < 0
        TALLY["kills" if killed else "ended before the kill"] += 1
        lost(before, content(root), about)
        again = outcome(phase.work)
        assert again.code == 0, about + again.stderr
        assert content(root) == whole, about
        assert left_over(root) == [], about


def test_snakemake_killed_with_and_without_its_jobs(swept):
    """Some files are not made yet; what the next call makes is what there was."""
    whole, root = content(swept.root), swept.root
    made = sorted(p for p in root.glob(f"{TIER}/*/sparsity/*") if p.suffix in (".json", ".png"))
    for number in range(cases(1, 8)):
        chance = chance_of("snakemake", number)
        for path in chance.sample([p for p in made if "specs" not in p.parts], 4):
            path.unlink()
        words, moment, alone = swept.command(), chance.uniform(2, 15), chance.random() < 0.5
        about = f"case {number} of seed {SEED}: killed after {moment:.2f} s, {alone=}"
        call = subprocess.Popen(
            words, cwd=root, env=swept.environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            call.wait(moment)
            TALLY["ended before the kill"] += 1
        except subprocess.TimeoutExpired:
            (os.kill if alone else os.killpg)(call.pid, signal.SIGKILL)
            call.wait()
            TALLY["kills"] += 1
        swept.snakemake("--unlock")
        again = swept.snakemake("--rerun-incomplete", check=False)
        assert again.returncode == 0, about + again.stdout + again.stderr
        lost(whole, content(root), about)
        assert left_over(root) == [], about


def test_a_job_killed_while_it_places_a_figure(swept, tmp_path):
    for name in ("cp", "mv"):  # do their work, and kill the shell that called them
        (tmp_path / name).write_text(f'#!/bin/sh\n/bin/{name} "$@"\nkill -9 $PPID\n')
        (tmp_path / name).chmod(0o755)
    before, path = content(swept.root), f"{tmp_path}:{os.environ['PATH']}"
    words = swept.command("--forcerun", "draw", "--", f"{TIER}/figures/sparsity/F7.png")
    killed = subprocess.run(words, cwd=swept.root, env={**swept.environment, "PATH": path})
    assert killed.returncode != 0
    swept.snakemake("--", f"{TIER}/figures/sparsity/F7.png")
    lost(before, content(swept.root), "placed again")


NAMESPACE = ("unshare", "--map-root-user", "--mount")


def test_a_disk_that_is_full_for_snakemake_too(swept, tmp_path):
    """Whoever writes when the room ends, Snakemake or a job: with room, the same is made."""
    mounted = [*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(mounted).returncode != 0:
        pytest.skip("no disk in memory can be mounted here")
    before = content(swept.root)
    names = ("fits/sparsity/chinchilla.json", "figures/sparsity/F7.png", "claims.md", "report.rst")
    words = swept.command("--rerun-incomplete", "--force", *(f"{TIER}/{name}" for name in names))
    for room in range(100, 100 + 100 * cases(1, 4), 100):
        out = tmp_path / str(room)
        out.mkdir()
        script = REPOSITORY / "tests/hostile/full_disk.sh"
        done = subprocess.run(
            [*NAMESPACE, script, swept.root, str(room), out, *words], env=swept.environment
        )
        assert done.returncode == 0, (out / "second.log").read_text()
        TALLY["full disks"] += (out / "first").read_text() != "0\n"
        lost(before, content(out), room)
        assert not list((out / "results").rglob(".*.tmp*"))
