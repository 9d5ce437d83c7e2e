"""Compute the likelihood of the true set of each text under a trained model, over all its orders.

A model writes sequences, so the probability of a set is the sum over all its orders. For small sets the sum is exact.
For any set, orders sampled from a proposal give bounds: "elbo" is the mean of log2 p / q over the samples, "bound" the
log2 of the mean of p / q, which is tighter. All values are in bits; closer to 0 is more probable. A proposal that
excludes orders (all but uniform may) can at best reach "allowed": the probability of the orders in its support.
"""

import argparse
from itertools import islice
from math import sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any

from setaug.cli.shared.options import (
    UsageError,
    add_input,
    checking_options,
    read_input,
    skipped_lines,
)
from setaug.progress import counting_from, progress_bar
from setaug.registry import DEFAULT_ORDERING, ORDERINGS, describe, proposals
from setaug.terminal import json_line, tell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from setaug.analysis.likelihood import SetLikelihood

_WINDOW = 4096
"""Number of examples that are read at a time, which bounds memory."""

EXAMPLES = """\
examples:
  setaug score run/ test.jsonl -o scores.jsonl
  setaug score run/ test.jsonl --proposal topological uniform --samples 16    which proposal is tighter?
  setaug score run/ test.jsonl --proposal uniform --samples 64 --max-exact 0  bounds only
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folder", metavar="MODEL", help="a folder written by setaug train, or org/name on the Hub")
    add_input(parser, of_model=True)
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="output file, JSONL [standard output]")
    group = parser.add_argument_group("scoring")
    group.add_argument(
        "--proposal",
        nargs="+",
        choices=tuple(proposals()),
        default=[DEFAULT_ORDERING],
        metavar="NAME",
        help="distribution to sample orders from, one or more; "
        + describe({name: ORDERINGS[ordering] for name, ordering in proposals().items()}, default=DEFAULT_ORDERING),
    )
    group.add_argument(
        "--samples", type=int, default=16, metavar="K", help="orders to sample per set and proposal [16]"
    )
    group.add_argument(
        "--max-exact",
        type=int,
        default=7,
        metavar="N",
        help="sum over all orders for sets with up to N labels (7 labels have 5,040); 0 for none [7]",
    )
    group.add_argument("--batch-size", type=int, default=32, metavar="N", help="orders per batch [32]")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="random seed [0]")
    group.add_argument("-q", "--quiet", action="store_true", help="no summary, except of bad lines")


def run(options: argparse.Namespace) -> None:
    """Score a file."""
    from setaug.analysis.likelihood import check_scoring
    from setaug.examples import Skipped
    from setaug.models import load_model
    from setaug.storage import check_jsonl, open_output

    check_jsonl(options.output)
    names = list(dict.fromkeys(options.proposal))
    with checking_options():
        check_scoring(names, options.samples, options.max_exact, options.seed)
    model = load_model(options.folder)
    from setaug.models import SetGenerator

    if not isinstance(model, SetGenerator):
        raise UsageError(f"only models that generate whole sets can be scored; this model is a {model.kind}.")
    skipped = Skipped() if options.skip_bad else None
    examples = read_input(options, options.input, skipped=skipped, remembered=model.columns_)
    scored: list[dict[str, SetLikelihood]] = []
    with open_output(options.output) as stream, progress_bar("loading the model") as progress, checking_options():
        while window := list(islice(examples, _WINDOW)):
            found = model.log_likelihoods(
                window,
                proposals=names,
                samples=options.samples,
                max_exact=options.max_exact,
                seed=options.seed,
                first_index=len(scored),
                batch_size=options.batch_size,
                skipped=skipped,
                progress=counting_from(len(scored), progress),
            )
            for each in found:
                stream.write(json_line(_row(each)))
            scored.extend(found)
    if not options.quiet:
        tell(*(_summary(scored, names, options) if scored else ["no sets"]))
    tell(*skipped_lines(skipped))


def _row(found: "dict[str, SetLikelihood]") -> dict[str, Any]:
    one = next(iter(found.values()))
    row = {"id": one.id, "n_labels": one.n_labels, "samples": one.samples, "exact": one.exact}
    proposals = {name: likelihood.to_dict() for name, likelihood in found.items()}
    return {**{name: value for name, value in row.items() if value is not None}, "proposals": proposals}


def _summary(scored: "list[dict[str, SetLikelihood]]", proposals: list[str], options: argparse.Namespace) -> list[str]:
    ones = [found[proposals[0]] for found in scored]
    lines = [
        f"{len(scored):,} sets with {fmean(one.n_labels for one in ones):.2f} labels on average; "
        f"{options.samples:,} orders sampled per set and proposal; mean bits per set",
        f"{'proposal':12}{'sets':>8}{'elbo':>10}{'bound':>10}",
    ]
    for name in proposals:
        bounded = [found[name] for found in scored if found[name].bound is not None]
        means = "".join(f"{_mean(getattr(one, field) for one in bounded):>10}" for field in ("elbo", "bound"))
        lines.append(f"{name:12}{len(bounded):8,}{means}")
    known = [found for found in scored if found[proposals[0]].exact is not None]
    if known:
        lines += _gaps(known, proposals, options.max_exact)
    for name in proposals[1:]:
        pairs = [(found[proposals[0]].bound, found[name].bound) for found in scored]
        differences = [one - two for one, two in pairs if one is not None and two is not None]
        if differences:
            lines.append(
                f"bound of {proposals[0]} minus bound of {name}, paired over {len(differences):,} sets "
                f"({differences.count(0):,} ties): {_with_error(differences)}"
            )
    uncounted = sum(any(one.bound is None for one in found.values()) for found in scored)
    if uncounted:
        lines.append(f"{uncounted:,} sets have no bound: too many orders to count")
    return lines


def _gaps(known: "list[dict[str, SetLikelihood]]", proposals: list[str], max_exact: int) -> list[str]:
    """Describe the gap between bounds and likelihood, and the part that more samples cannot close."""
    exact = _mean(found[proposals[0]].exact for found in known)
    lines = [
        f"exact likelihood of the {len(known):,} sets of up to {max_exact} labels: {exact}",
        f"{'proposal':12}{'elbo':>10}{'bound':>10}{'allowed':>10}   exact - bound",
    ]
    for name in proposals:
        ones = [found[name] for found in known]
        means = "".join(f"{_mean(getattr(one, field) for one in ones):>10}" for field in ("elbo", "bound", "allowed"))
        lines.append(f"{name:12}{means}   {_with_error([one.gap for one in ones if one.gap is not None])}")
    return lines


def _mean(values: "Iterable[float | None]") -> str:
    present = [value for value in values if value is not None]
    return f"{fmean(present):.3f}" if present else "-"


def _with_error(values: list[float]) -> str:
    """Write a mean with its standard error over sets."""
    import numpy as np

    error = f" ± {np.std(values, ddof=1) / sqrt(len(values)):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{error}"
