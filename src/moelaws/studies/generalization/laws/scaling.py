"""Loss over one scale, active parameters or tokens: the slopes of the generalization paper.

A straight line of ln L over ln x has no floor. The form ``floor`` has one, and the theory speaks of
its slope. Fits show which of the two forms the runs follow.
"""

from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)
