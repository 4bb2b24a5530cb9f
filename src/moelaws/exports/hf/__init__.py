"""A run as a folder in the layout of Hugging Face, which transformers loads as it stands.

architecture.py says which model of transformers a run is, and writes its config.json.
weights.py gives the tensors the names and the order of transformers, in shards.
tokenizer.py turns the corpus' tokenizer into the files of one of transformers.
card.py writes the model card from the run's record.
folder.py writes the whole folder, or nothing.
"""
