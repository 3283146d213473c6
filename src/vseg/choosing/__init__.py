"""Which pairs an adaptive session is asked next: the same while it goes on and in a replay from its data.

chooser   Chooser: what is known of one image from some answers, and the next batch of pairs
replay    replay(): every choice of an exported study, made once more from its answers

Nothing here knows databases, threads or clocks: what is chosen follows from the study, the answers taken, the pairs
still to be answered, and the seed of the batch.
"""

from vseg.choosing.chooser import Answered, Chooser, Chosen, rehearse, seed_of
from vseg.choosing.replay import Replayed, replay

__all__ = ["Answered", "Chooser", "Chosen", "Replayed", "rehearse", "replay", "seed_of"]
