"""vseg measures how a person segments an image, and how sure they are.

    truth = vseg.stimuli.random_maps(vseg.Grid(16), segments=3, seed=0)
    pairs = vseg.designs.scattered(truth.layout, segments=3, seed=1)
    responses = vseg.simulate(truth, pairs, blocks=10, seed=2)
    result = vseg.reconstruct(responses, segments=3, seed=3)
    vseg.figures.maps(truth, result.maps).savefig("maps.png")

`__init__.pyi` lists the public names; each is loaded when it is first used, so that `import vseg` is fast.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
