"""The method: label sets in, orders out (paper, section 3.1)."""

from setaug.orders.edges import EdgeTable, Thresholds
from setaug.orders.extensions import Extensions
from setaug.orders.graph import Edge, OrderGraph
from setaug.orders.orderings import ORDERINGS, SAMPLERS, OrderBatch, Ordering, make_ordering
from setaug.orders.statistics import LabelStatistics, SetBatch
from setaug.orders.streams import Stream

__all__ = [
    "ORDERINGS",
    "SAMPLERS",
    "Edge",
    "EdgeTable",
    "Extensions",
    "LabelStatistics",
    "OrderBatch",
    "OrderGraph",
    "Ordering",
    "SetBatch",
    "Stream",
    "Thresholds",
    "make_ordering",
]
