"""Laws of DeepSeek LLM (Bi et al. 2024), of dense models."""
