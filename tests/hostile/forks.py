"""Does commands of moelaws in forks of one process, so that what it loads is loaded once.

It reads a JSON line for each, [folder, words, environment], and writes one on how that ended.
"""

import json
import os
import subprocess
import sys

from hostile_outcome import Outcome, command, outcome


class Forks:
    """Such a process, with a preloaded ``library``."""

    def __init__(self, library):
        words = [sys.executable, __file__]
        environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": ":".join(sys.path)}
        self.process = subprocess.Popen(
            words, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ended(self, root, words, **environment):
        print(json.dumps([str(root), words, environment]), file=self.process.stdin, flush=True)
        return Outcome(*json.loads(self.process.stdout.readline()))


if __name__ == "__main__":
    import phases  # noqa: F401 - loads the package

    for line in sys.stdin:
        root, words, environment = json.loads(line)

        def work(root=root, words=words, environment=environment):
            os.environ.update(environment)
            command(root, *words)()

        done = outcome(work)
        print(json.dumps([done.code, done.stdout, done.stderr]), flush=True)
