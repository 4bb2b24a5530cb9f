"""Records which of the package's modules each command loads.

Python imports this file when it starts, if its folder is on PYTHONPATH. Each process of the command
line then writes its arguments and the files of the modules that it loaded to the folder
MOELAWS_LOADED, as one JSON file, when it ends.
"""

import atexit
import json
import os
import sys
from pathlib import Path


def record():
    if not is_command() or "moelaws.cli" not in sys.modules:
        return
    loaded = [
        str(module.__file__)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "moelaws" and getattr(module, "__file__", None)
    ]
    path = Path(os.environ["MOELAWS_LOADED"]) / f"{os.getpid()}-{sys.argv[1]}.json"
    path.write_text(json.dumps({"words": sys.argv[1:], "files": sorted(loaded)}))


def is_command():
    return Path(sys.argv[0] if sys.argv else "").name == "moelaws"


if "MOELAWS_LOADED" in os.environ and is_command():
    atexit.register(record)
