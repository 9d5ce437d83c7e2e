"""Decoding without torch: automata that accept only sets, votes over samples, and thresholds on label scores."""
