"""What walls cost: every measure of every wall at hand, side by side in one run, against floors and alternatives.

``run_bench`` measures, ``run_samples`` grades a model's samples isolated and in the published way, ``write_page``
puts a run's figures into a page. Figures are of the machine and the moment: nothing here judges a build by a time but
``BenchReport.ratios``, whose targets are ratios within one run.
"""

from tiltyard.bench.lanes import lane_names
from tiltyard.bench.machine import command_line
from tiltyard.bench.page import check_page, write_page
from tiltyard.bench.report import BenchReport
from tiltyard.bench.runs import run_bench, run_samples
from tiltyard.bench.samples import SamplesReport, grade_samples

__all__ = [
    "BenchReport",
    "SamplesReport",
    "check_page",
    "command_line",
    "grade_samples",
    "lane_names",
    "run_bench",
    "run_samples",
    "write_page",
]
