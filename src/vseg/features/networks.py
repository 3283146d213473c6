"""What any torch network makes of an image, as features: the activations of one of its layers at the locations."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from vseg.features import Feature


def activations(
    network: "torch.nn.Module", layer: str, *, prepare: "Callable[[Any], Any] | None" = None
) -> "Feature":
    """A feature: the activations of a named layer, (n, C), read off between its cells (bilinear).

    Parameters
    ----------
    network : torch.nn.Module
        Takes a batch of images (1, 3, H, W).
    layer : str
        One of the names in `network.named_modules()`, whose output is (1, C, h, w).
    prepare : callable, optional
        From the image as a tensor (1, 3, H, W) from 0 to 1 to what the network takes, such as its normalisation.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtra('Activations of a network need PyTorch: pip install "vseg[torch]".') from error
    parts = dict(network.named_modules())
    if layer not in parts:
        known = ", ".join(name for name in parts if name)
        raise InvalidInput(f"The network has no layer {layer!r}; it has {known:.300}.")
    network.eval()

    def read(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
        weights = next(network.parameters(), None)
        kind = torch.float32 if weights is None else weights.dtype
        shown = torch.from_numpy(np.ascontiguousarray(np.moveaxis(image, 2, 0))[None]).to(kind) / 255
        caught: list[torch.Tensor] = []
        hook = parts[layer].register_forward_hook(lambda part, given, made: caught.append(made))
        try:
            with torch.no_grad():
                network(shown if prepare is None else prepare(shown))
        finally:
            hook.remove()
        if not caught or not isinstance(caught[-1], torch.Tensor) or caught[-1].ndim != 4:
            got = "nothing" if not caught else tuple(getattr(caught[-1], "shape", ()))
            raise InvalidInput(f"Layer {layer} gives {got}; expected (1, C, h, w), as convolutions do.")
        where = torch.from_numpy(2 * layout.positions - 1).to(caught[-1].dtype)[None, None]
        found = torch.nn.functional.grid_sample(caught[-1], where, padding_mode="border", align_corners=False)
        return np.ascontiguousarray(found[0, :, 0].T.numpy(), np.float64)

    read.__name__ = f"{type(network).__name__}.{layer}"
    return read
