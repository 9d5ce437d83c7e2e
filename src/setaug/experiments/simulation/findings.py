"""The findings of the simulation study (appendix G), two of its side remarks, and two open questions, by name."""

from setaug.experiments.simulation.latent_orders import OBJECTIVE_STUDY, PROPOSAL_STUDY
from setaug.experiments.simulation.order_sensitivity import FINDING_1, FINDING_2, FINDING_3
from setaug.experiments.simulation.overlap_variants import LARGER_BLOCKS, NO_POSITIONS
from setaug.experiments.simulation.set_overlap import FINDING_4, FINDING_5
from setaug.experiments.simulation.set_size import FINDING_6

FINDINGS = {
    "finding-1": FINDING_1,
    "finding-2": FINDING_2,
    "finding-3": FINDING_3,
    "finding-4": FINDING_4,
    "finding-5": FINDING_5,
    "finding-6": FINDING_6,
    "larger-blocks": LARGER_BLOCKS,
    "no-positions": NO_POSITIONS,
    "proposals": PROPOSAL_STUDY,
    "objectives": OBJECTIVE_STUDY,
}
