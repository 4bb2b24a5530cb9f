"""What `moelaws contest` writes, as JSON data; no engine, so that its page needs none either."""

from typing import Any, NotRequired

from typing_extensions import TypedDict


class Score(TypedDict):
    """How well a law predicts held-out rows; a law without draws has no intervals.

    An infinite end of an interval is null, whatever its sign.
    """

    n: int  # rows
    rmse: float
    r2: float | None
    rmse_excess: float
    rank: int
    rmse_interval: NotRequired[list[float | None]]
    rank_interval: NotRequired[list[int]]
    first: NotRequired[float]  # how often the law is the best one
    rmse_excess_interval: NotRequired[list[float | None]]
    told_apart: NotRequired[bool]  # not of the best law: whether it is worse beyond chance


class LawScore(Score):
    """One law at one split."""

    law: str
    equation: str
    columns: dict[str, str]  # variable -> the table's column that it is read from
    derived: list[str]  # variables that no column holds, such as "C = 6 N_active D"
    parameters: int
    converged: bool  # at every step


class Step(TypedDict):
    """The rows of one round of fits."""

    holdout: str  # in words, which rows were held out
    fitted: int
    judged: int


class SplitScores(TypedDict):
    """The laws at one split, best first, and the refused ones with the reason."""

    name: str
    use: str
    steps: list[Step]
    blocks: int  # of held-out rows that err together (resample_by); 0 if rows err by themselves
    laws: list[LawScore]
    refused: dict[str, str]


class ContestScores(TypedDict):
    """All of a contest."""

    study: str
    title: str
    contest: str
    source: str
    runs: str  # what imported runs are called
    entry: dict[str, Any]  # of the study, as ``spec.fit.Contest`` dumps it
    seed: int
    splits: list[SplitScores]
    made_of: dict[str, Any]
