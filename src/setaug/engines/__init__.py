"""Count labels and augment examples in whole files, on this machine or on a cluster."""

from setaug.engines.augment_files import augment_files
from setaug.engines.job import AugmentReport, Engine
from setaug.engines.local import CountedFiles, LocalEngine, count_files
from setaug.engines.ray_engine import RayEngine

__all__ = [
    "AugmentReport",
    "CountedFiles",
    "Engine",
    "LocalEngine",
    "RayEngine",
    "augment_files",
    "count_files",
]
