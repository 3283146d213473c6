"""Score your own model against participants (here simulated).

Run it as it is: python examples/my_model.py. Run it on a dataset: vseg bench run DATASET --model examples/my_model.py.
"""

import numpy as np

import vseg


def model(image, segments=3):
    """Return labels (H, W) of an image (H, W, 3) by k-means on colours and, with less weight, positions."""
    from skimage.color import rgb2lab
    from skimage.filters import gaussian
    from sklearn.cluster import KMeans

    height, width = image.shape[:2]
    colours = gaussian(rgb2lab(image), sigma=height / 80, channel_axis=2) / 25
    positions = np.stack(np.mgrid[:height, :width], axis=2) / (height, width)
    pixels = np.concatenate([colours, positions], axis=2).reshape(height * width, -1)
    means = KMeans(segments, n_init=1, random_state=0).fit(pixels[::16])
    return means.predict(pixels).reshape(height, width)


if __name__ == "__main__":
    from vseg.models import Task, base_rate, black_box, check, logistic

    photograph = vseg.stimuli.load_sample("coffee", 160)
    print(check(model, photograph) or "No problems found.")

    grid = vseg.Grid(10)
    pairs = vseg.designs.scattered(grid, segments=3, seed=0)
    answers = []
    for number, name in enumerate(["Ann", "Ben", "Cleo"]):
        segmentations = [
            vseg.image_observers.simulate_annotation(
                photograph, grid, 3, weight, np.random.SeedSequence(number)
            )
            for weight in (0.1, 0.3 + 0.2 * number)
        ]
        answers.append(
            vseg.simulate(segmentations, pairs, blocks=2, participant=name, image="coffee", seed=number)
        )
    task = Task(vseg.data.responses.concatenate(answers), {"coffee": photograph}, segments=3)

    rivals = {"mine": black_box(model), "colour": logistic("lab"), "base rate": base_rate()}
    print(vseg.compare(task, rivals, per="all", seed=0).markdown())
