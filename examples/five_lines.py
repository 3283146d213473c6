"""The five lines: random maps, pairs to test, simulated answers, and the maps reconstructed from them."""

import vseg

truth = vseg.stimuli.random_maps(vseg.Grid(16), segments=3, seed=0)
pairs = vseg.designs.scattered(truth.layout, segments=3, seed=1)
responses = vseg.simulate(truth, pairs, blocks=10, seed=2)
result = vseg.reconstruct(responses, segments=3, seed=3)
vseg.figures.maps(truth, result.maps).savefig("maps.png")
