"""Nested data with another value somewhere in it."""

import copy


def changed(data, path, value):
    """``data`` with ``value`` at the dotted ``path``, whose numbers count entries from 0."""
    data = copy.deepcopy(data)
    *outer, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    target = data
    for step in outer:
        target = target[step]
    target[last] = value
    return data
