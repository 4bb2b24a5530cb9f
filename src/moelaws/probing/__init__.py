"""What a trained model holds inside: hidden states of its kept weights, to Parquet."""
