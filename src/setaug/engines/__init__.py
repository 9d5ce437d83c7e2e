"""The two jobs of the method, counting labels and augmenting examples, for whole files."""

from setaug.engines.cluster import RayEngine
from setaug.engines.jobs import AugmentReport, Engine, augment_files
from setaug.engines.local import CountedFile, LocalEngine, augment_file, count_file

__all__ = [
    "AugmentReport",
    "CountedFile",
    "Engine",
    "LocalEngine",
    "RayEngine",
    "augment_file",
    "augment_files",
    "count_file",
]
