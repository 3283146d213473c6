"""How long one person would take, by what a trial, a rest and the instructions take (`vseg.study.cost`)."""

from vseg.planning.assumptions import Guess
from vseg.study.cost import cost
from vseg.study.schema import Design, Study, parsed

BLOCKS_AT_MOST = 100


def study_of(guess: Guess) -> Study:
    """A study as it comes, with the guess's grid and segments."""
    return parsed(f"""
        name = "forecast"
        segments = {min(guess.segments, 12)}
        participants = 1
        layout = {{grid = {guess.grid}}}
        images = [{{name = "image", texture = "low"}}]
    """)


def minutes(study: Study, trials: int) -> float:
    """Of a person who answers so many trials about one image, with all else that the study asks of them.

    Examples
    --------
    >>> study = study_of(Guess(grid=11, segments=2, entropy=0.2))
    >>> [round(minutes(study, trials)) for trials in (121, 605)]
    [9, 22]
    """
    fewest = -(-len(study.layout.build()) // 2)
    blocks = min(-(-trials // study.pairs), BLOCKS_AT_MOST)
    design = Design(name="covering", trials=max(-(-trials // blocks), fewest), blocks=blocks)
    one_image = {"images": study.images[:1], "assignment": type(study.assignment)()}
    asked = study.model_copy(update={"design": design, **one_image})
    return cost(asked).minutes_each
