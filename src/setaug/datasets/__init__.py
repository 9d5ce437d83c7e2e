"""The paper's datasets, read from the files that their authors distribute."""

from setaug.datasets.entry import Dataset, DatasetEntry, DatasetStatistics
from setaug.datasets.loading import load_dataset
from setaug.datasets.registry import DATASETS, parse_name
from setaug.datasets.statistics import dataset_statistics, statistics_table

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetEntry",
    "DatasetStatistics",
    "dataset_statistics",
    "load_dataset",
    "parse_name",
    "statistics_table",
]
