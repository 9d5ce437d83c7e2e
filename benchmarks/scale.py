"""Measure how augmenting grows: time and memory against examples, labels, labels per set; spilling; Ray.

    python benchmarks/scale.py examples [--most 7] [--labels 20000]     10^5 to 10^7 examples
    python benchmarks/scale.py labels                    10^3 to 10^6 labels, 10^6 examples
    python benchmarks/scale.py sizes                     2 to 12 labels per set, 100,000 examples
    python benchmarks/scale.py pairs                     all pairs of many sets, in memory and spilled
    python benchmarks/scale.py ray [--most 7]            one machine against Ray on the same machine

Each run is a process of its own, which augments 1,000 examples first; then it takes its time (the best of several runs
below 10^7 examples), and its peak memory. The floor reads the input twice and writes as many bytes as the run wrote, no
more, in turns with it. Files are made in the folder --folder names, and removed.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import data
import numpy as np

from setaug.engines import augment_files
from setaug.orders import SetBatch, pair_counts
from setaug.orders.kernels import pair_keys
from setaug.orders.pair_counts import add_counts

CHUNK = 100_000


def generate(path: Path, n_examples: int, n_labels: int = 20_000, size: int = 4) -> None:
    """Write examples of about 150 bytes of text; frequencies of labels fall as by Zipf's law."""
    rng = np.random.default_rng(0)
    text = "a text of some length that says nothing about its labels, as nobody reads it, " * 2
    with path.open("w") as out:
        for start in range(0, n_examples, CHUNK):
            sizes = rng.integers(1, 2 * size, min(CHUNK, n_examples - start))
            labels = (n_labels ** rng.random(int(sizes.sum()))).astype(int).tolist()
            ends = np.cumsum(sizes).tolist()
            for number, (end, n) in enumerate(zip(ends, sizes.tolist(), strict=True), start):
                names = '","'.join([f"label {k}" for k in dict.fromkeys(labels[end - n : end])])
                out.write(f'{{"id":{number},"text":"{text}{number}","labels":["{names}"]}}\n')


def floor(source: Path, target: Path, n_bytes: int) -> float:
    """Read a file twice and write so many bytes; give the seconds."""
    start = time.perf_counter()
    buffer = bytearray(1 << 21)
    with source.open("rb", 0) as stream:
        for _ in range(2):
            stream.seek(0)
            while stream.readinto(buffer):
                pass
    with target.open("wb", 0) as out:
        for at in range(0, n_bytes, len(buffer)):
            out.write(memoryview(buffer)[: n_bytes - at])
    seconds = time.perf_counter() - start
    target.unlink()
    return seconds


def augment(source: Path, target: Path, *options: str) -> float:
    """Run the command; give its seconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "setaug", "augment", source, "-o", target, "-q", *options], check=True)
    return time.perf_counter() - start


def augment_here(few: Path, source: Path, target: Path, repeat: int) -> None:
    """Augment in this process; print four kinds of seconds, megabytes at the peak, and how many pairs were counted."""
    n_undecided = 0
    all_parts = pair_counts.SpillingPairCounts.parts

    def parts(self: pair_counts.SpillingPairCounts) -> Iterator[Any]:
        nonlocal n_undecided
        n_undecided = 0
        for keys, counts in all_parts(self):
            n_undecided += len(keys)
            yield keys, counts

    pair_counts.SpillingPairCounts.parts = parts
    augment_files(few, target)
    times = []
    for _ in range(repeat):
        before = time.process_time()
        seconds = augment_files(source, target).seconds
        processor = time.process_time() - before
        n_bytes = target.stat().st_size
        target.unlink()
        nowhere = augment_files(source, os.devnull).seconds
        times.append((seconds, floor(source, target, n_bytes), nowhere, processor))
    best = [min(column) for column in zip(*times, strict=True)]
    print(json.dumps([*best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, n_undecided]))


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def grow(folder: Path, cases: list[tuple[str, dict[str, int]]]) -> None:
    few, source, target = folder / "few.jsonl", folder / "in.jsonl", folder / "out.jsonl"
    generate(few, 20_000)  # more than `local.SMALL_INPUT`, so that the loops are compiled
    row(
        "case",
        "input MB",
        "seconds",
        "µs per example",
        "floor, µs",
        "to /dev/null, µs",
        "processor µs",
        "peak MB",
        "pairs counted",
    )
    row(*["---"] * 9)
    for name, settings in cases:
        generate(source, **settings)
        n = settings["n_examples"]
        repeat = 1 if n >= 10**7 else 3
        command = [sys.executable, __file__, "here", few, source, target, str(repeat)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        seconds, _, _, _, peak, n_undecided = found
        per_example = [f"{value * 1e6 / n:.2f}" for value in found[:4]]
        row(
            name,
            f"{source.stat().st_size / 1e6:,.0f}",
            f"{seconds:.1f}",
            *per_example,
            f"{peak:,.0f}",
            f"{n_undecided:,}",
        )


def count_pairs(way: str, *, are_many: bool) -> None:
    """Count all pairs of sets; print how many differ, the seconds, and by how many megabytes the peak rose."""
    if are_many:
        drawn = np.random.default_rng(0).integers(0, 200_000, (10**6, 12))
        batch = SetBatch(np.arange(0, drawn.size + 1, 12), np.sort(drawn).astype(np.int32).ravel())
    else:
        sets = data.label_sets(data.N_EXAMPLES, data.N_LABELS)
        batch = SetBatch.of(sets)
    pair_keys(batch.starts[:2], batch.ids)
    add_counts(*[np.ones(1, np.uint64), np.ones(1, np.int64)] * 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    if way == "counter":
        counter: Counter[tuple[int, int]] = Counter()
        for labels in sets:
            counter.update(combinations(sorted(labels), 2))
        n_pairs = len(counter)
    else:
        if way == "arrays":
            pair_counts.MAX_IN_MEMORY = 1 << 40
        with pair_counts.SpillingPairCounts() as counted:
            for at in range(0, len(batch), 5000):
                part = batch.sets(at, min(at + 5000, len(batch)))
                counted.add(pair_keys(part.starts, part.ids))
            n_pairs = sum(len(keys) for keys, _ in counted.parts())
    seconds = time.perf_counter() - start
    print(json.dumps([n_pairs, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before]))


def compare_counts() -> None:
    row("sets", "pairs of labels in", "different pairs", "seconds", "MB more at the peak")
    row(*["---"] * 5)
    few, many = "156,000, as in KP20k", "1,000,000 of 12 labels"
    for sets, way in ((few, "counter"), (few, "arrays"), (many, "arrays"), (many, "spilling")):
        command = [sys.executable, __file__, "count", way, sets]
        n_pairs, seconds, more = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        row(sets, {"counter": "a Counter"}.get(way, way), f"{n_pairs:,}", f"{seconds:.1f}", f"{more:,.0f}")


def compare_ray(folder: Path, most: int) -> None:
    source, target = folder / "in.jsonl", folder / "out.jsonl"
    row("examples", "where", "seconds", "same lines")
    row(*["---"] * 4)
    for power in range(min(5, most), most + 1):
        generate(source, 10**power)
        seconds = augment(source, target)
        row(f"10^{power}", "one machine", f"{seconds:.1f}", "")
        for workers in (1, 2):
            seconds = augment(source, target, "--engine", "ray", "--workers", str(workers), "--shards", "8")
            shards = sorted(folder.glob("out-*"))
            with (folder / "joined").open("wb") as joined:
                for shard in shards:
                    with shard.open("rb") as stream:
                        shutil.copyfileobj(stream, joined, 1 << 20)
                    shard.unlink()
            same = subprocess.run(["cmp", folder / "joined", target], check=False).returncode == 0
            row(f"10^{power}", f"Ray, {workers} at a time", f"{seconds:.1f}", "yes" if same else "NO")


def main() -> None:
    if sys.argv[1:2] == ["here"]:
        augment_here(*map(Path, sys.argv[2:5]), int(sys.argv[5]))
        return
    if sys.argv[1:2] == ["count"]:
        count_pairs(sys.argv[2], are_many="12" in sys.argv[3])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("examples", "labels", "sizes", "pairs", "ray"))
    parser.add_argument("--most", type=int, default=7)
    parser.add_argument("--labels", type=int, default=20_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        match options.what:
            case "examples":
                grow(
                    folder,
                    [
                        (f"10^{k} examples", {"n_examples": 10**k, "n_labels": options.labels})
                        for k in range(5, options.most + 1)
                    ],
                )
            case "labels":
                n = 10**6
                grow(folder, [(f"10^{k} labels", {"n_examples": n, "n_labels": 10**k}) for k in range(3, 7)])
            case "sizes":
                n = 100_000
                grow(folder, [(f"{k} labels a set", {"n_examples": n, "size": k}) for k in (2, 4, 8, 12)])
            case "pairs":
                compare_counts()
            case "ray":
                compare_ray(folder, options.most)


if __name__ == "__main__":
    main()
