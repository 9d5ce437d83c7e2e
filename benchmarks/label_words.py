"""What the words of labels are worth to TF-IDF: trained on the training data, predicted for the dev data.

    OMP_NUM_THREADS=1 python benchmarks/label_words.py --data-dir DIR --data 'reuters[min2,train300]'

F1 is the mean over the sets, macro F that over the labels of the dev data; CPU seconds of fitting, and of predicting.
"""

import argparse
import time

from setaug import TfidfClassifier
from setaug.datasets import load_dataset
from setaug.metrics import score_sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, nargs="+")
    parser.add_argument("--data-dir", required=True)
    options = parser.parse_args()
    print(f"{'':32} {'':12}   F1  macro F   fit  predict")
    for name in options.data:
        dataset = load_dataset(name, options.data_dir)
        gold = [example.labels for example in dataset.dev]
        texts = [example.text for example in dataset.dev]
        for label_words in (False, True):
            began = time.process_time()
            model = TfidfClassifier(label_words=label_words).fit(dataset.train)
            fitted = time.process_time()
            found = [one.labels for one in model.predict(texts)]
            took = time.process_time() - fitted
            scores = score_sets(gold, found)
            what = "label words" if label_words else "plain"
            values = f"{100 * scores.samples_f1:4.1f} {100 * scores.macro_f1:8.1f} {fitted - began:5.1f} {took:8.2f}"
            print(f"{name:32} {what:12} {values}", flush=True)


if __name__ == "__main__":
    main()
