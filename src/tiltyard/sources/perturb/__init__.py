"""Tasks told otherwise: other names, files, constants, orders and words, the same work. Against contamination.

Promises: a variant is validated before it is kept (its reference scores 1, its start 0), it differs from its original in
what a player sees and in its digest, and it says what it was made of. The same pool, kinds and seed give the same
variants, whatever the workers. Never: changes a name that is not the task's own, or a text that is data.
"""

from tiltyard.sources.lineage import lineage
from tiltyard.sources.perturb.model import KINDS, Made, PerturbReport
from tiltyard.sources.perturb.run import as_pool, perturb

__all__ = ["KINDS", "Made", "PerturbReport", "as_pool", "lineage", "perturb"]
