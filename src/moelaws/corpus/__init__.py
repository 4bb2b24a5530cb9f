"""Text sources, tokenizer, token shards and deterministic, resumable batches."""
