"""Few-shot prompts for language models, and answers that are read as sets."""
