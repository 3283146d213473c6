"""Simulation studies: a function, a grid of settings, repeats, a seed; anywhere; as a tidy table.

running.py     sweep(): the front door
dealing.py     how trials are dealt out to workers, and again when a worker is lost
trials.py      what a trial is: its setting, its repeat, its seed, its plain result
kept.py        finished trials in a folder, so that a cut run goes on
executors.py   where the work is done: here, threads, any Executor (places.py, processes.py, clusters.py for Dask)
table.py       Table: what comes back
"""

from vseg.sweeps.executors import workers
from vseg.sweeps.run import sweep
from vseg.sweeps.table import Table

__all__ = ["Table", "sweep", "workers"]
