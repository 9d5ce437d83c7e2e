"""The variational view (section 3.1, appendix H), measured: TSAMPLE as a proposal, and its bound as an objective."""

from setaug.experiments.design import Finding, Rows, Scale
from setaug.experiments.report import Check, Panel, Series, spread
from setaug.experiments.set_overlap import ADDED, WAYS, cells_5, paired_cell, paired_values
from setaug.experiments.simulation import PROPOSED, SAMPLES

OBJECTIVES = ("plain", "elbo", "iwelbo")


def _panels_proposals(scale: Scale, rows: Rows) -> list[Panel]:
    panels = []
    for ordering in WAYS:
        exact = paired_values(rows, scale, ordering, ADDED[-1], "likelihood", "exact")
        series = []
        for name in PROPOSED:
            points = {}
            for samples in SAMPLES:
                bound = paired_values(rows, scale, ordering, ADDED[-1], "likelihood", "bound", name, str(samples))
                points[str(samples)] = [part - whole for whole, part in zip(exact, bound, strict=True)]
            allowed = paired_values(rows, scale, ordering, ADDED[-1], "likelihood", "allowed", name)
            points["∞"] = [part - whole for whole, part in zip(exact, allowed, strict=True)]
            series.append(Series(f"{name} proposal", points))
        panels.append(
            Panel(
                title=f"Model trained on {ordering} orders",
                x="orders drawn, K",
                y="exact - bound (bits per set)",
                series=series,
            )
        )
    return panels


def _checks_proposals(scale: Scale, rows: Rows) -> list[Check]:
    found = []
    for panel, ordering in zip(_panels_proposals(scale, rows), WAYS, strict=True):
        one, other = panel.series
        found += [
            Check(
                f"trained on {ordering} orders, K = {samples}: TSAMPLE's bound is closer than that of uniform orders",
                all(a < b for a, b in zip(one.points[str(samples)], other.points[str(samples)], strict=True)),
                f"gap {spread(one.points[str(samples)])} against {spread(other.points[str(samples)])} bits",
            )
            for samples in SAMPLES
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
        plain, weighted = (
            _objective_values(rows, scale, ordering, name, "likelihood", "exact") for name in ("plain", "iwelbo")
        )
        found.append(
            Check(
                f"{ordering} orders: the importance-weighted objective makes test sets likelier than the plain one",
                all(after < before for before, after in zip(plain, weighted, strict=True)),
                f"{spread(weighted)} against {spread(plain)} bits per set",
            )
        )
    return found


PROPOSALS = Finding(
    title="TSAMPLE as a proposal for the likelihood of a set",
    claim="TSAMPLE is a richer proposal distribution than uniform orders (section 3.1; no number is given).",
    cells=cells_5,
    panels=_panels_proposals,
    checks=_checks_proposals,
)
OBJECTIVE = Finding(
    title="The importance-weighted bound as a training objective",
    claim="In practice, k samples from the proposal optimise a weighted bound (section 3.1; no number is given).",
    cells=lambda scale, seed: [
        paired_cell(scale, seed, ordering, ADDED[-1], objective) for ordering in WAYS for objective in OBJECTIVES
    ],
    panels=_panels_objectives,
    checks=_checks_objectives,
)
