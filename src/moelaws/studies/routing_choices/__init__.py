"""Our own study: gates, balance, top-k and the optimizer of mixtures at equal FLOPs.

arms.py     has the arms, and the effect of each one's choice on the loss
derived/    effects.py sets each effect at equal tokens and at equal time
figures.py  draws the effects, the load of experts, and the losses over compute
tables.py   sets the arms with their losses and loads, and the effects
claims.py   has what its claims measure
"""
