"""The two jobs of the method, counting labels and augmenting examples, for whole files: here or on a cluster."""

from setaug.engines.cluster import RayEngine
from setaug.engines.jobs import AugmentReport, Engine, augment_files
from setaug.engines.local import CountedFiles, LocalEngine, count_files

__all__ = [
    "AugmentReport",
    "CountedFiles",
    "Engine",
    "LocalEngine",
    "RayEngine",
    "augment_files",
    "count_files",
]
