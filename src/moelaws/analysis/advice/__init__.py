"""Advice: how should a budget be spent, by all laws at once?

plans.py       what a plan is, the constraints, and the least point of a function over plans
judges.py      a law with coefficients that is taken as the truth, and its own best plan
regret.py      what a plan costs where a law that did not choose it is the truth
setters.py     laws that set one variable, or the tokens alone, and judge nothing
build.py       a configuration of whole experts and layers
sources.py     the laws and fits of config/advice.yaml and of --fits
advise.py      all of it together
"""

from moelaws.analysis.advice.advise import Advice, Recommendation, advise
from moelaws.analysis.advice.judges import Judge
from moelaws.analysis.advice.plans import Constraints, Plans, ideal
from moelaws.analysis.advice.regret import Regret
from moelaws.analysis.advice.setters import Adviser, Setter

__all__ = [
    "Advice",
    "Adviser",
    "Constraints",
    "Judge",
    "Plans",
    "Recommendation",
    "Regret",
    "Setter",
    "advise",
    "ideal",
]
