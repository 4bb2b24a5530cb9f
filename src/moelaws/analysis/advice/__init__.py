"""Advice: how should a budget be spent, by all laws at once?

plans.py       what a plan is, and the constraints
shapes.py      the models that can be built, their counts, and what a budget trains of each
regret.py      candidate laws, and the regret of a plan if a law that did not choose it is the truth
sources.py     the laws and fits of config/advice.yaml and of --fits
advise.py      the whole answer
study.py       the best of these as a study, with the fits that its runs determine
sweeps.py      the small sweep that would narrow the regret most
short.py       what to build, what loss to expect, and what it costs, side by side for two plans,
               and the models that people trained
blocks.py      tables and sentences, and what they are as Markdown
page.py        the answer as tables, sentences and JSON, and the outlook of a tier
"""

from moelaws.analysis.advice.advise import Advice, advise, served_for, side_by_side
from moelaws.analysis.advice.plans import Constraints, Plans, ideal
from moelaws.analysis.advice.regret import CandidateLaw

__all__ = [
    "Advice", "CandidateLaw", "Constraints", "Plans", "advise", "ideal", "served_for",
    "side_by_side",
]  # fmt: skip
