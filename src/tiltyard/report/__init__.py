"""What the records of a store teach about its players and its pool.

Promises: ``report`` says only what follows from the records, with an interval where it is an estimate, voids apart and
never as 0; the same records give the same report, in SQLite and in PostgreSQL; a store of millions of steps is not
loaded whole. The HTML page is one file that asks nothing of a network.
Never: plays an episode, writes into a store, or calls an attempt dishonest: it shows the evidence.
"""

from tiltyard.report.build import Report, open_store, report

__all__ = ["Report", "open_store", "report"]
