"""Print a README's one-line command by its marker: the code block after ``<!-- line: NAME -->``."""

import re
import sys
from pathlib import Path

readme = (Path(__file__).parents[1] / "README.md").read_text()
match = re.search(rf"<!-- line: {re.escape(sys.argv[1])} -->\s*```\w*\n(.+?)\n```", readme, re.S)
if match is None or "\n" in match[1]:
    sys.exit(f"README.md: no one-line code block after <!-- line: {sys.argv[1]} -->")
print(match[1])
