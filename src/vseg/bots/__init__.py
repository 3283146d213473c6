"""Simulated participants that take a running study over HTTP, as a browser does.

group         run many of them at once, each with a seed of its own
participant   one of them: a session, its trials in order, flagged ones again, contours, every record sent
pair_source   which pairs are shown: the session's own, or those that the server chooses on the way
perception    what they see: given maps, a model's output, or maps made from the image itself
client        HTTP requests, repeated when the server does not answer

Only the HTTP interface is used; neither the store nor the server is imported.

Examples
--------
>>> summary = run_bots("http://localhost:8000/s/my-study/", count=15, seed=0)  # doctest: +SKIP
"""

from vseg.bots.group import GroupSummary, load_borders, load_true_maps, parse_observer, run_bots

__all__ = ["GroupSummary", "load_borders", "load_true_maps", "parse_observer", "run_bots"]
