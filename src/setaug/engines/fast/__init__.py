"""Rows as bytes: located in blocks of JSON lines, numbered, and written as pairs, compiled or in pure Python."""
