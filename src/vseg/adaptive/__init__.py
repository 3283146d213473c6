"""Adaptive designs: ask next the pairs whose answers are expected to reduce the uncertainty of the maps most.

state         State: everything learnt from the responses of one image so far; stop(): whether that is enough
acquisition   next_pairs(): the pairs with the highest expected reduction of variance
chooser       Chooser: choose batches of pairs for a session of a study
replay        replay(): make every choice of an exported study again from its responses

All choices follow from the responses in their order and from seeds, so that a session can be replayed from its data.
Names are loaded when first used: the server imports the chooser without loading the sampler.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
