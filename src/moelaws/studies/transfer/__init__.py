"""Our own study: does the best rate of a small model serve wider and deeper ones, and more experts?

derived.py  has the best rate of each shape, how far it lies from the base's, and what that costs
"""
