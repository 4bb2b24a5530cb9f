"""What README's first line costs: jobs, wall and CPU seconds of each rule, and the total.

Clones a commit of this repository into a fresh folder, runs the line there and prints a table.
Start it on an idle machine. `--second` runs README's second line after the first. The seconds that
a loop of additions takes stand beside, since they tell one machine from another.

    python benchmarks/demo.py [--commit HEAD] [--second] [--keep FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]

# Python imports this at its start. The outermost Python process of each job, which writes to the
# job's log, notes what it and its children used.
RECORDER = """
import atexit, json, os, resource, time
began = time.time()
log = os.readlink("/proc/self/fd/1")
if log.endswith(".log") and "MOELAWS_TIMED" not in os.environ:
    os.environ["MOELAWS_TIMED"] = "1"
    pid = os.getpid()
    def note():
        if os.getpid() != pid:
            return
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        cpu = sum(one.ru_utime + one.ru_stime for one in used)
        line = json.dumps({"log": log, "wall": time.time() - began, "cpu": cpu})
        with open(os.environ["MOELAWS_TIMES"], "a") as file:
            file.write(line + "\\n")
    atexit.register(note)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--second", action="store_true", help="README's second line, too")
    parser.add_argument("--keep", type=Path, help="clone into this new folder and leave it there")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch) / "moelaws"
        git = ["git", "-c", "advice.detachedHead=false"]
        subprocess.run([*git, "clone", "--quiet", REPOSITORY, folder], check=True)
        subprocess.run([*git, "checkout", "--quiet", options.commit], cwd=folder, check=True)
        measured = {"commit": _output(folder, "git", "rev-parse", "HEAD"), **_machine()}
        install, _, workflow = readme_line(folder, "demo").rpartition(" && ")
        measured["installation"] = _timed(install, folder, {})
        measured["first line"] = by_rule(workflow, folder, Path(scratch))
        if options.second:
            measured["second line"] = by_rule(readme_line(folder, "all"), folder, Path(scratch))
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1) + "\n")
    print(table(measured))


def readme_line(folder: Path, name: str) -> str:
    """Returns the one-line command that follows a marker in the clone's README."""
    return _output(folder, sys.executable, ".ci/readme_line.py", name)


def by_rule(command: str, folder: Path, scratch: Path) -> dict[str, dict[str, float]]:
    """Runs a call of Snakemake; returns jobs, wall and CPU seconds by rule, and of all together."""
    (scratch / "recorder").mkdir(exist_ok=True)
    (scratch / "recorder/sitecustomize.py").write_text(RECORDER)
    times = scratch / "times.jsonl"
    times.write_text("")
    before = {*folder.glob(".snakemake/log/*.log")}
    total = _timed(
        command, folder, {"PYTHONPATH": str(scratch / "recorder"), "MOELAWS_TIMES": str(times)}
    )
    # What Snakemake says of each job: its rule's name, and the log that the job writes to.
    said = "".join(p.read_text() for p in {*folder.glob(".snakemake/log/*.log")} - before)
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", said, re.M)
    logs = {
        str(folder.resolve() / found[1]): rule
        for rule, lines in jobs
        if (found := re.search(r"    log: (\S+)", lines))
    }
    rules: dict[str, dict[str, float]] = defaultdict(lambda: {"jobs": 0, "wall": 0.0, "cpu": 0.0})
    for line in times.read_text().splitlines():
        one = json.loads(line)
        row = rules[logs.get(one["log"], "other")]
        row["jobs"] += 1
        row["wall"] += one["wall"]
        row["cpu"] += one["cpu"]
    own = total["cpu"] - sum(row["cpu"] for row in rules.values())
    rules["snakemake itself"] = {"jobs": 1, "wall": total["wall"], "cpu": own}
    return {**rules, "all": {"jobs": len(jobs), **total}}


def table(measured: dict) -> str:
    """Returns the measurements as a Markdown table, the dearest rule first."""
    lines = [
        f"commit {measured['commit'][:8]}; {measured['cores']} cores of {measured['processor']}; "
        f"2e7 additions in {measured['additions']:.1f} s",
        "",
        f"installation: {measured['installation']['wall']:.0f} s, "
        f"{measured['installation']['cpu']:.0f} CPU-seconds",
    ]
    for name in ("first line", "second line"):
        if name not in measured:
            continue
        lines += ["", f"| {name} | jobs | wall s | CPU s |", "|-|-:|-:|-:|"]
        rows = sorted(measured[name].items(), key=lambda row: (row[0] == "all", -row[1]["cpu"]))
        lines += [
            f"| {rule} | {row['jobs']:.0f} | {row['wall']:.0f} | {row['cpu']:.0f} |"
            for rule, row in rows
        ]
    return "\n".join(lines)


def _timed(command: str, folder: Path, environment: dict[str, str]) -> dict[str, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder, env=os.environ | environment, stdout=sys.stderr, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": time.time() - began, "cpu": cpu}


def _machine() -> dict[str, str | int | float]:
    names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    began, total = time.time(), 0
    for number in range(20_000_000):
        total += number
    additions = time.time() - began
    return {
        "processor": names[0] if names else "?",
        "cores": os.cpu_count() or 1,
        "additions": additions,
    }


def _output(folder: Path, *words: str) -> str:
    return subprocess.run(
        words, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
