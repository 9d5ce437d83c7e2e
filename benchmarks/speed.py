"""Measure speed, each time against a baseline in the same run, best of several.

    python benchmarks/speed.py [--data LABELS.txt ...] [--memory-gb 2] [--repeat 5]

Data is generated, of KP20k's size; files of real label sets (one set a line, labels separated by ";") can be added.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations
from math import log2
from pathlib import Path
from typing import Any

import data
import networkx as nx
import numpy as np
import orjson

from setaug.orders import SetBatch, Thresholds, make_ordering
from setaug.orders.edges import edges_among
from setaug.orders.kernels import undecided_keys

N_ORDERS = 2


def best(repeat: int, *jobs: Callable[[], Any]) -> list[float]:
    """Run jobs in turns, so that all meet the same noise; give each one's best time."""
    times = [float("inf")] * len(jobs)
    for _ in range(repeat):
        for at, job in enumerate(jobs):
            start = time.perf_counter()
            job()
            times[at] = min(times[at], time.perf_counter() - start)
    return times


def plain(sets: list[list[int]], n_counted: int) -> float:
    """Count all pairs with a Counter; order the first sets with networkx. Give the seconds that all would take."""
    start = time.perf_counter()
    labels: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for labels_of_set in sets:
        labels.update(labels_of_set)
        pairs.update(combinations(sorted(labels_of_set), 2))
    counting = time.perf_counter() - start
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    for labels_of_set in sets[:n_counted]:
        graph = nx.DiGraph()
        graph.add_nodes_from(labels_of_set)
        for a, b in combinations(sorted(labels_of_set), 2):
            if log2(pairs[a, b] * len(sets) / (labels[a] * labels[b])) > 1:
                difference = log2(labels[a]) - log2(labels[b])
                if difference > log2(3):
                    graph.add_edge(b, a)
                elif -difference > log2(3):
                    graph.add_edge(a, b)
        for _ in range(N_ORDERS):
            # A lexicographic sort by random keys gives different orders, as the paper's code draws them.
            keys = dict(zip(labels_of_set, rng.random(len(labels_of_set)), strict=True))
            list(nx.lexicographical_topological_sort(graph, key=keys.__getitem__))
    return counting + (time.perf_counter() - start) * len(sets) / n_counted


def compiled(batch: SetBatch, n_labels: int, sampler: str) -> None:
    """Count what is needed of the same sets, and draw their orders."""
    thresholds = Thresholds()
    counts = np.bincount(batch.ids, minlength=n_labels)
    cap = thresholds.sure_cap(len(batch))
    keys = undecided_keys(batch.starts, batch.ids, thresholds.bounds(counts), cap)
    edges = edges_among(*np.unique(keys, return_counts=True), counts, len(batch), thresholds, cap=cap)
    ordering = make_ordering("topological", labels=[], edges=edges, sampler=sampler)
    ordering.orders(batch, N_ORDERS, seed=0, first_index=0)


def compare_orders(name: str, sets: list[list[int]], repeat: int) -> None:
    n_labels = max(map(max, filter(None, sets))) + 1
    print(f"{name}: counting and {N_ORDERS} orders each for {len(sets):,} sets with {n_labels:,} labels")
    baseline = min(plain(sets, min(len(sets), 20_000)) for _ in range(2))
    print(f"  Counter and networkx: {baseline:.1f} s (orders drawn the quick way, which is not uniform)")
    few = [labels for labels in sets if len(labels) <= 32]
    for what, chosen in (("all sets", sets), (f"the {len(few) / len(sets):.2%} with up to 32 labels", few)):
        batch = SetBatch.of(chosen)
        for sampler in ("uniform", "quick"):
            compiled(batch, n_labels, sampler)
            (ours,) = best(repeat, lambda batch=batch, sampler=sampler: compiled(batch, n_labels, sampler))
            print(f"  {what}, {sampler}: {ours:.3f} s, {baseline / ours:.0f} times as fast")
        if len(few) == len(sets):
            break


def read_and_write(source: Path, target: Path, sync: bool = False) -> None:
    """Parse each line and write it as often as there are pairs: the floor."""
    with source.open("rb") as lines, target.open("wb", 1 << 20) as out:
        for line in lines:
            orjson.loads(line)
            for _ in range(N_ORDERS + 1):
                out.write(line)
        if sync:
            out.flush()
            os.fsync(out.fileno())


def augment(source: Path, target: Path) -> None:
    from setaug.engines import augment_files

    augment_files(source, target)


def compare_files(folder: Path, repeat: int) -> None:
    source = folder / "examples.jsonl"
    data.write(source)
    floor_out, ours_out = folder / "floor.jsonl", folder / "ours.jsonl"
    augment(source, ours_out)

    def fresh(job: Callable[[Path, Path], None], target: Path) -> Callable[[], None]:
        def run() -> None:
            target.unlink(missing_ok=True)
            job(source, target)

        return run

    synced = partial(read_and_write, sync=True)
    jobs = fresh(read_and_write, floor_out), fresh(synced, floor_out), fresh(augment, ours_out)
    floor, synced_floor, ours = best(repeat, *jobs)
    print(
        f"JSONL to JSONL, {source.stat().st_size / 1e6:.0f} MB: {ours:.2f} s; only parsing with orjson and writing:"
        f" {floor:.2f} s, ratio {ours / floor:.2f}; synced to the disk, as ours is: {synced_floor:.2f} s,"
        f" ratio {ours / synced_floor:.2f}"
    )


def measure_memory(folder: Path, gigabytes: float) -> None:
    source, target = folder / "large.jsonl", folder / "large.out.jsonl"
    n_examples = int(gigabytes * 1e9 / 1226)
    n_labels = int(n_examples * data.N_LABELS / data.N_EXAMPLES)
    subprocess.run(
        [sys.executable, data.__file__, source, "--examples", str(n_examples), "--labels", str(n_labels)], check=True
    )
    # The process itself looks up its peak: the one that the parent is told starts from the parent's own.
    code = f"""
from setaug.cli import main
main(["augment", {str(source)!r}, "-o", {str(target)!r}, "--quiet"])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    start = time.perf_counter()
    peak = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    seconds = time.perf_counter() - start
    print(
        f"memory: {source.stat().st_size / 1e9:.2f} GB, {n_examples:,} examples, {n_labels:,} labels"
        f" in {seconds:.0f} s; peak {peak / 1024:.0f} MB"
    )


def measure_start(folder: Path, repeat: int) -> None:
    source = folder / "thousand.jsonl"
    data.write(source, 1000, 1500)

    def command(*arguments: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-m", "setaug", *arguments], check=True, capture_output=True)

    bare, help_, thousand = best(
        repeat,
        lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
        command("--help"),
        command("augment", str(source), "-o", str(folder / "thousand.out.jsonl")),
    )
    print(f"start: python alone {bare:.2f} s, setaug --help {help_:.2f} s, augmenting 1,000 lines {thousand:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", type=Path, default=[], help="files of real label sets")
    parser.add_argument("--memory-gb", type=float, default=0, help="also measure the peak memory for so large a file")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    compare_orders("generated", data.label_sets(data.N_EXAMPLES, data.N_LABELS), options.repeat)
    ids: dict[str, int] = {}
    real = [
        [ids.setdefault(label, len(ids)) for label in dict.fromkeys(part.strip() for part in line.split(";"))]
        for path in options.data
        for line in path.read_text().splitlines()
    ]
    if real:
        compare_orders("real", real, options.repeat)
    with tempfile.TemporaryDirectory() as folder:
        measure_start(Path(folder), options.repeat)
        compare_files(Path(folder), options.repeat)
        if options.memory_gb:
            measure_memory(Path(folder), options.memory_gb)


if __name__ == "__main__":
    main()
