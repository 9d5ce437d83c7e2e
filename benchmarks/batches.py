"""Measure prediction with and without a bound on the tokens of a batch, on texts of mixed lengths, in one run.

    OMP_NUM_THREADS=1 python benchmarks/batches.py MODEL TEXTS.jsonl [--texts 96] [--tokens 32 64 128] [--repeat 2]

MODEL is a folder of ``setaug train``. The bounds are tokens per row of a full batch, `TOKENS_PER_ROW`; ``inf`` is no
bound. All sets have ``--size`` labels: a model that writes empty sets would show neither the time of the decoder nor
whether the sets are the same.
"""

import argparse
import time
from pathlib import Path

import torch

from setaug import SetGenerator, read_examples
from setaug.models.neural import batches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--texts", dest="n_texts", type=int, default=96)
    parser.add_argument("--tokens", type=float, nargs="+", default=[float("inf"), 128, 64, 32])
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    texts = [example.text for example in read_examples(Path(options.texts))][: options.n_texts]
    model = SetGenerator.from_pretrained(options.model)
    model.predict(texts[:2], choose="written", size_is=options.size)
    expected = None
    for _ in range(options.repeat):
        for tokens in options.tokens:
            batches.TOKENS_PER_ROW = tokens
            start = time.process_time()
            found = [one.labels for one in model.predict(texts, choose="written", size_is=options.size)]
            seconds = time.process_time() - start
            expected = expected or found
            n_same = sum(one == other for one, other in zip(found, expected, strict=True))
            print(
                f"{tokens:g} tokens per row: {len(texts) / seconds:.2f} texts per CPU second; {n_same} of {len(texts)} "
                f"sets the same, {len(set(found))} different ones",
                flush=True,
            )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
