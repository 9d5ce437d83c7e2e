"""The two jobs of the method, counting labels and augmenting examples, for whole files."""

from setaug.engines.local import AugmentReport, CountedFile, augment_file, count_file

__all__ = ["AugmentReport", "CountedFile", "augment_file", "count_file"]
