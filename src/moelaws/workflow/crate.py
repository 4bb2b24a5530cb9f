"""The metadata by which other tools read an archive: a Workflow Run RO-Crate.

It keeps to Workflow Run Crate 0.5 and Workflow RO-Crate 1.0, on RO-Crate 1.1. The sweep is an
action of the workflow, and each training an action of the package.
"""

import json
import mimetypes
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from moelaws import __version__
from moelaws.files.atomic import read_json
from moelaws.records.runs import read_record
from moelaws.workflow.jobs import Jobs

FILE = "ro-crate-metadata.json"
_FIXED = Path(__file__).with_suffix(".json")  # what is the same in all archives
_FAILED = "http://schema.org/FailedActionStatus"
mimetypes.add_type("application/vnd.apache.parquet", ".parquet")
mimetypes.add_type("application/yaml", ".yaml")


def metadata(files: Mapping[str, tuple[str, int]], jobs: Jobs, call: str, time: str) -> str:
    """Returns the JSON of an archive's metadata.

    ``files`` has the SHA-256 and the bytes of each file by its name, ``call`` is the call of
    Snakemake that made the sweep, and ``time`` says when it is archived (ISO 8601).
    """
    fixed = read_json(_FIXED)
    known = {entity["@id"]: entity for entity in fixed["@graph"]}
    title = f"{' and '.join(jobs.studies)} at tier {jobs.project.tier}"
    outputs = [name for name in files if name.startswith(f"{jobs.folder.root.as_posix()}/")]
    inputs = [name for name in files if name.startswith(("config/", "own/", "results/corpora/"))]
    runs = [_training(run, files, jobs) for run in jobs.runs]
    known["#sweep"] |= {
        "name": f"The sweep of {title}",
        "description": call,
        "object": _references(inputs),
        "result": _references(outputs),
    }
    for run in runs:
        known[run["@id"]] = run
    for name, (digest, size) in files.items():
        entity = known.setdefault(name, {"@id": quote(name), "@type": "File"})
        entity |= {
            "sha256": digest,
            "contentSize": str(size),
            "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
        }
    known["#moelaws"]["softwareVersion"] = __version__
    known["./"] |= {
        "name": f"moelaws: {title}",
        "datePublished": time,
        "mentions": _references(["#sweep", *(run["@id"] for run in runs)]),
        "hasPart": _references(files),
    }
    return json.dumps({**fixed, "@graph": [*known.values()]}, indent=1) + "\n"


def _training(run: str, files: Iterable[str], jobs: Jobs) -> dict[str, Any]:
    """Returns the action of a run; where it did not complete, this says so, and why."""
    folder, record = jobs.results.run(run).as_posix(), read_record(jobs.results, run)
    processes = [record.provenance, *record.provenance.get("resumed_from", [])]
    config = f"{folder}/config.json"
    failed = {} if record.status == "completed" else {"actionStatus": {"@id": _FAILED}}
    if failed and record.summary.get("message"):
        failed["error"] = record.summary["message"]
    return {
        "@id": f"#run-{run}",
        "@type": "CreateAction",
        "name": f"Training of the run {run}",
        "instrument": {"@id": "#moelaws"},
        "startTime": min(process["started"] for process in processes),
        "object": {"@id": quote(config)},
        "result": _references(n for n in files if n.startswith(f"{folder}/") and n != config),
        **failed,
    }


def _references(ids: Iterable[str]) -> list[dict[str, str]]:
    return [{"@id": quote(one, "/#")} for one in ids]
