"""Study files to start from: one that explains every setting, the paper's three experiments, and two short ones.

commented     explains every setting; two textures
texture       the paper's experiment with textures (Figures 7 and 9, S5)
natural       the paper's experiment with natural images (Figure 6); the images are the researcher's own
example       the paper's example session (Figure 1, bottom)
patches       coloured patches, two minutes per participant
photographs   photographs that come with scikit-image, five segments each
"""

import re
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from vseg.errors import Conflict, InvalidInput

Starter = Literal["commented", "texture", "natural", "example", "patches", "photographs"]


def read_starter(like: Starter, name: str) -> str:
    """Return the text of a starter as a study file for a study of this name."""
    return files(__name__).joinpath(f"{like}.toml").read_text(encoding="utf-8").replace("NAME", name)


def write_study(name: str, *, like: Starter = "commented", folder: str | Path = ".") -> Path:
    """Write NAME.toml, a study file to start from; an existing file is not replaced.

    Parameters
    ----------
    name : str
        Name of the study: lower-case letters, digits and hyphens, at most 63.
    like : str
        "commented", an example that explains every setting; "texture", "natural" or "example", the experiments of the
        paper; "patches" or "photographs", two short studies.
    folder : str or Path
        Where to write it.

    Returns
    -------
    Path
        The study file.

    Examples
    --------
    >>> write_study("my-textures", like="texture").name  # doctest: +SKIP
    'my-textures.toml'
    """
    if like not in get_args(Starter):
        raise InvalidInput(f"Expected a study like {', '.join(get_args(Starter))}, got {like!r}.")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        raise InvalidInput(
            "Expected a name of at most 63 lower-case letters, digits and hyphens, such as my-study, "
            f"got {name!r}."
        )
    path = Path(folder) / f"{name}.toml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(read_starter(like, name))
    except FileExistsError:
        raise Conflict(f"{path} exists; choose another name, or remove the file first.") from None
    return path
