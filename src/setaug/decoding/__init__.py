"""Decoding that can only give a set: token trie, the machines that read sets, and choices over many generations."""
