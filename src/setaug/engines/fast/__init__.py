"""Rows as bytes: found in blocks of JSON lines, numbered, and written as pairs, compiled or in plain Python."""
