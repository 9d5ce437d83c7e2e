"""Models that are trained with torch and transformers. Importing this package alone imports neither."""
