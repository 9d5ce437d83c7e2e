"""Sets from servers of language models: the set constraint as a plugin for vLLM."""
