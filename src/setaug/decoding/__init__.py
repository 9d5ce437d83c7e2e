"""Decoding without torch: automata that allow nothing but sets, votes over samples, and thresholds on label scores."""
