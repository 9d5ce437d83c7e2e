"""Measure how augmenting grows: time and memory against examples, labels, labels per set; spilling; Ray.

    python benchmarks/scale.py examples [--most 7]       10^5 to 10^7 examples, 20,000 labels
    python benchmarks/scale.py labels                    10^3 to 10^6 labels, 10^6 examples
    python benchmarks/scale.py sizes                     2 to 16 labels per set, 300,000 examples
    python benchmarks/scale.py pairs                     all pairs of KP20k-size sets, in memory and spilled
    python benchmarks/scale.py ray [--most 6]            one machine against Ray on the same machine

Each run is a process of its own, whose time and peak memory are taken when it ends. The floor reads the input twice
and writes as many bytes as the run wrote, no more. Files are made in the folder --folder names, and removed.
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
from itertools import combinations
from pathlib import Path

import data
import numpy as np

from setaug.orders import SetBatch, pairs
from setaug.orders.kernels import pair_keys

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


def augment(source: Path, target: Path, *options: str) -> tuple[float, float, float]:
    """Run the command; give wall seconds, processor seconds and megabytes at its peak."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "setaug", "augment", source, "-o", target, "-q", *options])
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit("the run failed")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def grow(folder: Path, cases: list[tuple[str, dict[str, int]]]) -> None:
    source, target = folder / "in.jsonl", folder / "out.jsonl"
    generate(source, 1000)
    start_up = min(augment(source, target)[0] for _ in range(2))
    print(f"starting, for 1,000 examples: {start_up:.1f} s (taken off below)")
    row("case", "input MB", "seconds", "µs per example", "floor, µs", "processor µs", "peak MB")
    row(*["---"] * 7)
    for name, settings in cases:
        generate(source, **settings)
        n = settings["n_examples"]
        seconds, processor, peak = augment(source, target)
        least = floor(source, folder / "floor", target.stat().st_size)
        micro = 1e6 / n
        row(
            name,
            f"{source.stat().st_size / 1e6:,.0f}",
            f"{seconds:.1f}",
            f"{(seconds - start_up) * micro:.2f}",
            f"{least * micro:.2f}",
            f"{(processor - start_up) * micro:.2f}",
            f"{peak:,.0f}",
        )


def count_pairs(max_in_memory: int | None) -> None:
    """Count all pairs of generated sets of KP20k's size, and print seconds and peak memory, in this process."""
    sets = data.label_sets(data.N_EXAMPLES, data.N_LABELS)
    batch = SetBatch.of(sets)
    if max_in_memory is not None:
        del sets
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pair_keys(batch.starts[:2], batch.ids)
    start = time.perf_counter()
    if max_in_memory is None:
        counter: Counter[tuple[int, int]] = Counter()
        for labels in sets:
            counter.update(combinations(sorted(labels), 2))
        n_pairs = len(counter)
    else:
        pairs.MAX_IN_MEMORY = max_in_memory
        pairs._MAX_PENDING = min(pairs._MAX_PENDING, max_in_memory)
        with pairs.SpillingPairCounts() as counted:
            for at in range(0, len(batch), 5000):
                part = batch.sets(at, min(at + 5000, len(batch)))
                counted.add(pair_keys(part.starts, part.ids))
            n_pairs = sum(len(keys) for keys, _ in counted.parts())
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([n_pairs, seconds, peak - before]))


def compare_counts() -> None:
    row("pairs of labels", "different", "seconds", "MB more at the peak")
    row(*["---"] * 4)
    ways = {"a Counter": None, "sorted arrays, in memory": 1 << 30, "spilled, 200,000 in memory": 200_000}
    for name, limit in ways.items():
        command = [sys.executable, __file__, "count", "--limit", str(limit or 0)]
        n_pairs, seconds, more = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        row(name, f"{n_pairs:,}", f"{seconds:.2f}", f"{more:.0f}")


def compare_ray(folder: Path, most: int) -> None:
    source, target = folder / "in.jsonl", folder / "out.jsonl"
    row("examples", "where", "seconds", "same lines")
    row(*["---"] * 4)
    for power in range(5, most + 1):
        generate(source, 10**power)
        seconds, *_ = augment(source, target)
        row(f"10^{power}", "one machine", f"{seconds:.1f}", "")
        for workers in (1, 2):
            seconds, *_ = augment(source, target, "--engine", "ray", "--workers", str(workers), "--shards", "8")
            shards = sorted(folder.glob("out-*"))
            with (folder / "joined").open("wb") as joined:
                for shard in shards:
                    with shard.open("rb") as stream:
                        shutil.copyfileobj(stream, joined, 1 << 20)
                    shard.unlink()
            same = subprocess.run(["cmp", folder / "joined", target], check=False).returncode == 0
            row(f"10^{power}", f"Ray, {workers} at a time", f"{seconds:.1f}", "yes" if same else "NO")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("examples", "labels", "sizes", "pairs", "ray", "count"))
    parser.add_argument("--most", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        match options.what:
            case "examples":
                grow(folder, [(f"10^{k} examples", {"n_examples": 10**k}) for k in range(5, options.most + 1)])
            case "labels":
                n = 10**6
                grow(folder, [(f"10^{k} labels", {"n_examples": n, "n_labels": 10**k}) for k in range(3, 7)])
            case "sizes":
                n = 300_000
                grow(folder, [(f"{k} labels a set", {"n_examples": n, "size": k}) for k in (2, 4, 8, 16)])
            case "pairs":
                compare_counts()
            case "ray":
                compare_ray(folder, min(options.most, 6))
            case "count":
                count_pairs(options.limit or None)


if __name__ == "__main__":
    main()
