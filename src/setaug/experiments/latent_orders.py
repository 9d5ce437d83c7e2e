"""The variational view (section 3.1, appendix H), measured: TSAMPLE as a proposal, and its bound as an objective."""

from setaug.experiments.design import Finding, Rows, Scale
from setaug.experiments.report import Check, Panel, Series, are_below, spread
from setaug.experiments.set_overlap import ADDED, WAYS, paired_cell
from setaug.experiments.trial import PROPOSED, SAMPLES

OBJECTIVES = ("plain", "elbo", "iwelbo")
_PROPOSED_FOR = {
    "Trained on the given and 2 topological orders": ("topological", "plain"),
    "Trained on topological orders only": ("topological", "elbo"),
    "Trained on random orders": ("random", "plain"),
}
"""Models for whose sets proposals are compared: which orders they were trained on, by which objective."""


def _panels_proposals(scale: Scale, rows: Rows) -> list[Panel]:
    panels = []
    for title, (ordering, objective) in _PROPOSED_FOR.items():

        def bits(*path: str, ordering: str = ordering, objective: str = objective) -> list[float]:
            return _objective_values(rows, scale, ordering, objective, "likelihood", *path)

        series = []
        for name in PROPOSED:
            costs = {str(samples): bits("bound", name, str(samples)) for samples in SAMPLES}
            costs["∞"] = bits("allowed", name)
            gaps = {
                samples: [cost - exact for cost, exact in zip(each, bits("exact"), strict=True)]
                for samples, each in costs.items()
            }
            series.append(Series(f"{name} proposal", gaps))
        panels.append(Panel(title=title, x="orders drawn, K", y="exact - bound (bits per set)", series=series))
    return panels


def _checks_proposals(scale: Scale, rows: Rows) -> list[Check]:
    found = []
    for panel in _panels_proposals(scale, rows):
        tsample, uniform = (series.points for series in panel.series)
        found += [
            Check(
                f"{panel.title.lower()}, K = {samples}: TSAMPLE's bound is closer than that of uniform orders",
                are_below(tsample[samples], uniform[samples]),
                f"gap {spread(tsample[samples])} against {spread(uniform[samples])} bits",
            )
            for samples in map(str, SAMPLES)
        ]
    return found


def _objective_values(rows: Rows, scale: Scale, ordering: str, objective: str, *path: str) -> list[float]:
    return rows.values(lambda seed: paired_cell(scale, seed, ordering, ADDED[-1], objective), *path)


def _panels_objectives(scale: Scale, rows: Rows) -> list[Panel]:
    def panel(title: str, y: str, *path: str) -> Panel:
        series = [
            Series(
                f"{ordering} orders",
                {name: _objective_values(rows, scale, ordering, name, *path) for name in OBJECTIVES},
            )
            for ordering in WAYS
        ]
        return Panel(title=title, x="objective", y=y, series=series, are_bars=True)

    return [
        panel("Likelihood of the set, over all its orders", "bits per test set", "likelihood", "exact"),
        panel("Greedy, constrained to sets", "Jaccard, test sets", "decodings", "constrained greedy", "jaccard"),
    ]


def _checks_objectives(scale: Scale, rows: Rows) -> list[Check]:
    found = []
    for ordering in WAYS:
        bits = {name: _objective_values(rows, scale, ordering, name, "likelihood", "exact") for name in OBJECTIVES}
        for other, is_control in (("elbo", False), ("plain", True)):
            found.append(
                Check(
                    f"{ordering} orders: iwelbo makes test sets likelier than {other}",
                    are_below(bits["iwelbo"], bits[other]),
                    f"{spread(bits['iwelbo'])} against {spread(bits[other])} bits per set",
                    is_control=is_control,
                )
            )
    return found


PROPOSAL_STUDY = Finding(
    title="TSAMPLE is the better proposal for the likelihood of a set",
    claim="TSAMPLE is a richer proposal distribution than uniform orders (section 3.1; no number is given).",
    cells=lambda scale, seed: [
        paired_cell(scale, seed, ordering, ADDED[-1], objective) for ordering, objective in _PROPOSED_FOR.values()
    ],
    panels=_panels_proposals,
    checks=_checks_proposals,
)
OBJECTIVE_STUDY = Finding(
    title="The importance-weighted bound is the better training objective",
    claim="In practice, k samples from the proposal optimise a weighted bound (section 3.1; no number is given).",
    cells=lambda scale, seed: [
        paired_cell(scale, seed, ordering, ADDED[-1], objective) for ordering in WAYS for objective in OBJECTIVES
    ],
    panels=_panels_objectives,
    checks=_checks_objectives,
)
