"""Adaptive designs: ask next the pairs whose answers are expected to reduce the uncertainty of the maps most.

state         State: the posterior of an image given the answers so far; stop_reason(): whether that is enough
acquisition   next_pairs(): the pairs with the highest expected reduction of variance
history       the order in which the answers of a study are taken
chooser       Chooser: takes the answers of a study about an image and chooses the next pairs
two_stage     two_stage_pairs(): the second half of the pairs from a map of the first half's answers
replay        replay(): make every choice of an exported study again from its answers

All choices follow from the answers in their order and from seeds, so a study can be replayed from its data.
Names are loaded when first used: the server imports the chooser without loading the sampler.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
