"""Reconstruct maps from your own answers: a table with columns i, j and same, from several participants."""

import csv

import vseg

grid = vseg.Grid(8)  # locations 0..63, counted row by row from the top left

# Instead of an experiment: two participants who split the image into a left and a right half.
with open("responses.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["participant", "i", "j", "same"])
    for participant in ("Ann", "Ben"):
        for i, j in vseg.designs.balanced(grid, segments=2, seed=0):
            writer.writerow([participant, i, j, int((i % 8 < 4) == (j % 8 < 4))])

responses = vseg.load("responses.csv", grid)
for participant, result in vseg.reconstruct_each(responses, by="participant", segments=2, seed=0).items():
    print(f"{participant}: {result.message}")
