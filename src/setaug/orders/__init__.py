"""The method: label sets in, orders out (paper, section 3.1)."""

from setaug.orders.arrays import SetBatch
from setaug.orders.edges import EdgeTable, Thresholds
from setaug.orders.graph import Edge, OrderGraph
from setaug.orders.linear_extensions import LinearExtensions
from setaug.orders.orderings import OrderBatch, Ordering, OrderingInputs, make_ordering
from setaug.orders.rng import Stream
from setaug.orders.statistics import LabelStatistics
from setaug.registry import ORDERINGS, SAMPLERS

__all__ = [
    "ORDERINGS",
    "SAMPLERS",
    "Edge",
    "EdgeTable",
    "LabelStatistics",
    "LinearExtensions",
    "OrderBatch",
    "OrderGraph",
    "Ordering",
    "OrderingInputs",
    "SetBatch",
    "Stream",
    "Thresholds",
    "make_ordering",
]
