"""All that is measured on a GPU, in parts that go on where they were stopped: docs/speed.md.

python benchmarks/on_gpu.py                                   on a GPU, 25 minutes
python benchmarks/on_gpu.py --parts speed tier                some parts
python benchmarks/on_gpu.py --device cpu --small --out FOLDER tries everything, measures nothing
python benchmarks/on_gpu.py --report                          writes docs/speed.md
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib import import_module
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "src"))

from gpu import needs, report  # noqa: E402

# Part -> seconds that one of its measurements took on an H200, with what is compiled for it.
SECONDS = {
    "speed": 28,
    "profile": 10,
    "accuracy": 13,
    "tests": 97,
    "resume": 23,
    "packing": 27,
    "tier": 8,
}
EVIDENCE = Path("docs/evidence/gpu.json")


def main(words: list[str] | None = None) -> int:
    """Returns the exit code: 1 where a measurement failed or time was up, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", default=list(SECONDS), choices=SECONDS,
                        metavar="PART", help=f"some of {', '.join(SECONDS)}")  # fmt: skip
    parser.add_argument("--skip", nargs="+", default=[], metavar="NAME",
                        help="measurements that are left for another call")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=25.0,
                        help="after which no other measurement begins (25)")  # fmt: skip
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results/gpu_day")
    parser.add_argument("--wheels", type=Path, default=REPOSITORY / "wheels",
                        help="wheels to install where packages are missing")  # fmt: skip
    parser.add_argument("--small", action="store_true", help="seconds, on any machine")
    parser.add_argument("--report", action="store_true", help="only write docs/speed.md")
    args = parser.parse_args(words)
    if args.device == "cpu" and not args.small:
        parser.error("on the CPU the full sizes take days: add --small")
    needs.install_carried(args.wheels, args.wheels / "installed")
    if args.report:
        write_report(args.out)
        return 0
    needs.check(args.device)
    from gpu.parts import Setting, measure
    from moelaws.files.atomic import read_json

    setting = Setting(args.device, args.out, args.small, args.wheels)
    items = {part: import_module(f"gpu.{part}").items(setting) for part in args.parts}
    if not args.small:
        minutes = {part: len(named) * SECONDS[part] / 60 for part, named in items.items()}
        for part, expected in (*minutes.items(), ("all", sum(minutes.values()))):
            print(f"{part}: some {expected:.1f} minutes on an H200 if nothing is measured yet")
    until = time.monotonic() + 60 * args.minutes
    path, whole = args.out / "all.json", []
    for part, named in items.items():
        whole.append(measure(part, named, setting, until, args.skip))
    print(f"{path} holds {', '.join(read_json(path))}")
    return 0 if all(whole) else 1


def write_report(out: Path) -> None:
    """Writes docs/speed.md from what was measured, and keeps the numbers beside the evidence."""
    from moelaws.files.atomic import read_json, write_json

    source = out / "all.json"
    if not source.exists():
        raise SystemExit(f"{source} does not exist: `make gpu` writes it, on a machine with a GPU")
    parts = read_json(source)
    report.write(REPOSITORY / "docs/speed.md", parts)
    write_json(REPOSITORY / EVIDENCE, parts)
    print(f"docs/speed.md and {EVIDENCE} hold the numbers of {source}")


if __name__ == "__main__":
    # One thread a core where runs stand side by side; BLAS reads this when it is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
