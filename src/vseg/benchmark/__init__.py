"""A benchmark that others can enter: a dataset is an exported folder, a submission a file with `model(image)`.

tasks        a dataset folder as a Task, and the digest by which its answers and images are known
datasets     such folders from BSDS500, and from scikit-image's pictures with simulated observers
submissions  a model run in a process of its own, within limits of time and memory
inside       that process
scoring      a submission's maps scored like any other model
leaderboard  leaderboard.json, and a page of it

Examples
--------
>>> from vseg import benchmark
>>> task = benchmark.load("exported")  # doctest: +SKIP
>>> ran = benchmark.run("mine.py", task.images, task.layout, seconds=600, memory_mb=4000)  # doctest: +SKIP
>>> entry = benchmark.score(task, ran, seed=0)  # doctest: +SKIP
"""

from vseg.benchmark.leaderboard import Entry, Leaderboard
from vseg.benchmark.scoring import given_maps, score
from vseg.benchmark.submissions import Ran, run
from vseg.benchmark.tasks import digest, load

__all__ = ["Entry", "Leaderboard", "Ran", "digest", "given_maps", "load", "run", "score"]
