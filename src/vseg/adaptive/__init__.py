"""Which pairs to ask next: those whose answers are expected to settle most about the maps.

`State` takes the answers as they come and stays warm; `next_pairs` chooses from its draws; `stop` says when enough is
known. All of it follows from the answers, in their order, and from seeds: a session can be replayed from its data.
"""

from vseg.adaptive.choice import RULES, choose, next_pairs
from vseg.adaptive.state import State, stop

__all__ = ["RULES", "State", "choose", "next_pairs", "stop"]
