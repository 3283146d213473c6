"""Choose an unknown number of segments: try several, and see which predicts held-out answers best."""

import vseg

truth = vseg.stimuli.random_maps(vseg.Grid(12), segments=3, entropy=0.1, seed=0)
pairs = vseg.designs.scattered(truth.layout, segments=4, seed=1)
responses = vseg.simulate(truth, pairs, blocks=5, seed=2)

choice = vseg.choose_segments(responses, segments=range(2, 5), seed=3)
for row in choice.table():
    held_out, won = row["held_out"], row["segments_won"]
    print(f"K = {row['segments']}: {held_out:.3f} nats per trial, {won} maps win a location")
print(f"Chosen: {choice.by_likelihood}")
