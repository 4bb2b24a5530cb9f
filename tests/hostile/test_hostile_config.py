"""Whatever stands anywhere in the configuration is taken, or refused in one clear line."""

import copy
import random
import shutil

import pytest
import yaml
from hostile_outcome import CASES, judged, outcome

from moelaws.cli import end_as
from moelaws.spec.from_yaml import read_yaml
from moelaws.workflow.jobs import Jobs
from repository import REPOSITORY

CONFIG = "config/config.yaml"
TEXT = ("hello world, this is text. " * 40 + "\n\n") * 20_000
ODD = [
    *(None, True, -1, 0, 1.5, 1e300, 10**400, float("nan"), float("inf"), "", "x", "1:30", "010"),
    *("\x00", "{a}", "*", "C > 1", "größe", "9" * 5000, [], [None], {}, {"x": 1}, [[]], [1e300]),
    *([{"name": 5}], "[" * 200, "../../etc/passwd", "$(touch pwned)", "!!python/object:os.system"),
]
MARKS = [
    *(b":", b"- ", b"[", b"}", b"'", b"\n", b"  ", b"\t", b"&a ", b"*a", b"<<: ", b"? ", b"| "),
    *(b"!!int ", b"!!set ", b"!!binary ", b"%", b"\xff", b"\x00", b"---\n", b"0x", b"1:2"),
    *(b"[" * 2000, b"{a: " * 2000, b"9" * 6000, b"2020-99-99"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(REPOSITORY / "config", root / "config")
    (root / "text.txt").write_text(TEXT)
    config = {**read_yaml(root / CONFIG), "corpus": "text.txt"}
    (root / CONFIG).write_text(yaml.safe_dump(config))
    return root


def files(root):
    return [root / CONFIG, *sorted((root / "config/studies").glob("*.yaml"))]


def load(root):
    """Reads the project as the Snakefile does."""
    return lambda: end_as(lambda: print(Jobs.load({}, root).too_much()))


def paths(data, before=()):
    """The path of every key and entry, of the grids only the demo's."""
    for step, value in data.items() if isinstance(data, dict) else enumerate(data):
        if before != ("grids",) or step == "demo":
            yield (*before, step)
            if isinstance(value, dict | list):
                yield from paths(value, (*before, step))


def odd(target, key, chance):
    target[key] = chance.choice(ODD)


def missing(target, key, chance):
    del target[key]


def misspelt(target, key, chance):
    if isinstance(target, dict):
        word = str(key)
        place = chance.randrange(len(word))
        target[word[:place] + word[place + 1 :]] = target.pop(key)
    else:
        target.append(target[key])


def nested(target, key, chance):
    for _ in range(chance.choice((1, 3, 150))):
        target[key] = [target[key]]


def scaled(target, key, chance):
    value = target[key]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    target[key] = value * chance.choice((-1, 0, 1e-9, 1e9, 10**30)) if number else f"{value}x"


MUTATIONS = (odd, odd, missing, misspelt, nested, scaled)


def attempt(root, file, data, case):
    text = file.read_bytes()
    file.write_bytes(data)
    try:
        judged(case, outcome(load(root)))
    finally:
        file.write_bytes(text)
    assert not (root / "pwned").exists()


@pytest.mark.slow
def test_every_key(root):
    chance = random.Random("keys")
    places = [(file, path) for file in files(root) for path in paths(read_yaml(file))]
    chance.shuffle(places)
    for file, (*outer, last) in places[: 2 * CASES]:
        changed = target = copy.deepcopy(read_yaml(file))
        for step in outer:
            target = target[step]
        mutation = chance.choice(MUTATIONS)
        mutation(target, last, chance)
        text = yaml.safe_dump(changed, sort_keys=False, allow_unicode=True)
        case = f"{file.name} {'.'.join(map(str, (*outer, last)))} {mutation.__name__}"
        attempt(root, file, text.encode("utf-8", "surrogatepass"), case)


@pytest.mark.slow
def test_texts(root):
    chance = random.Random("texts")
    for _ in range(CASES):
        file = chance.choice(files(root))
        text = file.read_bytes()
        place, length = chance.randrange(len(text)), chance.choice((0, 0, 5, 200))
        mark = chance.choice(MARKS)
        data = text[:place] + mark + text[place + length :]
        attempt(root, file, data, f"{file.name} {mark[:20]!r} at {place}")
