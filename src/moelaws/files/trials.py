"""Trials of rules that the project ships, as `moelaws make power` wrote them: config/power/."""

import hashlib
import json
from pathlib import Path
from typing import Any

from moelaws.files.atomic import read_json
from moelaws.spec.study import Study

SHIPPED = Path("config/power")  # TIER/STUDY.json


def trial(study: Study, tier: str) -> str:
    """Returns a digest of what the trials of a study's rules on simulated tables depend on.

    That is the grid of ``tier``, the rules with all that they read, and the laws that simulate
    losses; a sentence that says it otherwise changes nothing.
    """
    rules = {"name", "code", "arguments", "expect", "null_model", "fits", "derived"}
    whole = dict.fromkeys(("simulation", "nulls", "fits", "derived"), True)
    read: Any = {"grids": {tier}, "claims": {"__all__": rules}, **whole}
    words: Any = {"claims": {"__all__": {"arguments": {"rule": {"says", "missing"}}}}}
    data = study.model_dump(mode="json", exclude_defaults=True, include=read, exclude=words)
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def shipped(study: Study, tier: str) -> list[Path]:
    """Returns the file of the trials, or none where the grid or the rules are others by now."""
    path = SHIPPED / tier / f"{study.study}.json"
    return [path] * (path.is_file() and read_json(path)["trial"] == trial(study, tier))
