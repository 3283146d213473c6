"""What a fit hands on: the result, how K was chosen, and what was amiss; or why there is none."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vseg.cli.output import Advance
from vseg.errors import InvalidInput, NotConverged, VsegWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vseg.bayes import Posterior, SegmentsTable
    from vseg.data.maps import Maps
    from vseg.data.responses import Responses
    from vseg.reconstruction.reconstruct import Reconstruction
    from vseg.reconstruction.segment_selection import SegmentsChoice

    Picture = NDArray[np.uint8] | None

SPATIAL = (
    "segments", "mean_entropy", "entropy_low", "entropy_high", "expected_error", "evidence", "lapses",
)  # fmt: skip
"""What summary.json says of the maps without the image, where the prior looks at it."""


@dataclass(frozen=True)
class Found:
    """A result, how K was chosen where it was, whose it is, and what was amiss with it."""

    result: "Reconstruction | Posterior"
    choice: "SegmentsChoice | None" = None
    table: "SegmentsTable | None" = None
    about: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def maps(self) -> "Maps":
        """What is reported."""
        return self.result.maps

    @property
    def message(self) -> str:
        """What was chosen, if anything was, what was found, and how the catch trials went."""
        caught = ""
        if "catch_asked" in self.about:
            caught = f"{self.about['catch_right']} of {self.about['catch_asked']} catch trials were right."
        said = self.choice.message if self.choice is not None else ""
        if self.table is not None:
            said = f"K = {self.table.chosen} by evidence (plausible: {self.table.said})."
        return " ".join(part for part in (said, self.result.message, self._alone, caught) if part)

    @property
    def _alone(self) -> str:
        """With an image prior: what the answers alone say."""
        if self.spatial is None:
            return ""
        low, high = self.spatial.entropy_interval
        return (
            f"Answers alone, without the image: mean entropy {self.spatial.entropy:.3f} nats, "
            f"90 % interval {low:.3f} to {high:.3f}."
        )

    @property
    def spatial(self) -> "Posterior | None":
        """The posterior without the image, where there is one with it."""
        return getattr(self.result, "spatial", None)

    def save(self, folder: Path) -> None:
        """Write maps.npz and summary.json."""
        about: dict[str, Any] = dict(self.about)
        if self.spatial is not None:
            without = self.spatial.summary()
            about["spatial"] = {name: without[name] for name in SPATIAL}
        if self.table is not None:
            about |= {"segments_table": self.table.rows(), "segments_plausible": self.table.plausible}
        if self.choice is not None:
            about |= {
                "segments_table": self.choice.table(),
                "segments_by_likelihood": self.choice.by_likelihood,
                "segments_by_empty_maps": self.choice.by_empty_maps,
            }
        self.result.save(folder, about)


@dataclass(frozen=True)
class Refused:
    """Why someone's answers could not be fitted."""

    why: str


Each = Iterator[tuple[str, Found | Refused]]


class Method(Protocol):
    """Whatever fits answers."""

    def fitted(
        self, answers: "Responses", counts: list[int], advance: Advance, shown: "Picture" = None
    ) -> Found:
        """One K, or the best of several."""
        ...


def tried(
    method: Method,
    answers: "Responses",
    counts: list[int],
    advance: Advance,
    shown: "Picture",
) -> Found | Refused:
    """A fit with the warnings that came with it as its note, or why there is none."""
    try:
        with collected() as said:
            found = method.fitted(answers, counts, advance, shown)
    except (InvalidInput, NotConverged) as error:
        return Refused(str(error))
    return replace(found, notes=tuple(said))


@contextmanager
def collected() -> Iterator[list[str]]:
    """The sentences of our own warnings, which are not shown; others are."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        yield said
    for one in caught:
        if issubclass(one.category, VsegWarning):
            said.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
