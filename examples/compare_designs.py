"""Compare which share of the locations each design leaves logically ambiguous, for three segments on a 16×16 grid."""

import numpy as np

import vseg

grid = vseg.Grid(16)
sizes = (vseg.designs.paper_trials(grid, 3), vseg.designs.minimal_trials(grid, 3))
for design in (vseg.designs.covering, vseg.designs.balanced, vseg.designs.scattered):
    shares = [
        np.mean(
            [
                vseg.designs.coverage(design(grid, trials=trials, seed=seed), segments=3).ambiguous
                for seed in range(5)
            ]
        )
        for trials in sizes
    ]
    print(f"{design.__name__:10} {shares[0]:.1%} with {sizes[0]} pairs, {shares[1]:.1%} with {sizes[1]}")
