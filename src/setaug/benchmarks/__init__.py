"""The paper's four data sets, from the files that their authors distribute."""

from setaug.benchmarks.benchmark import Benchmark
from setaug.benchmarks.loading import load_benchmark
from setaug.benchmarks.names import BENCHMARKS, PAPER_VARIANTS, parse_name
from setaug.benchmarks.statistics import (
    PAPER_STATISTICS,
    BenchmarkStatistics,
    benchmark_statistics,
    statistics_table,
)

__all__ = [
    "BENCHMARKS",
    "PAPER_STATISTICS",
    "PAPER_VARIANTS",
    "Benchmark",
    "BenchmarkStatistics",
    "benchmark_statistics",
    "load_benchmark",
    "parse_name",
    "statistics_table",
]
