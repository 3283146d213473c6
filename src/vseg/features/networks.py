"""Features from any torch network: the activations of one of its layers at the locations."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from vseg.features import Feature


def activations(
    network: "torch.nn.Module", layer: str, *, prepare: "Callable[[torch.Tensor], torch.Tensor] | None" = None
) -> "Feature":
    """Return a feature: the activations (n, C) of a named layer, interpolated bilinearly at the locations.

    Parameters
    ----------
    network : torch.nn.Module
        Takes a batch of images (1, 3, H, W).
    layer : str
        A name from `network.named_modules()`; the layer's output must have the shape (1, C, h, w).
    prepare : callable, optional
        Maps the image, a tensor (1, 3, H, W) from 0 to 1, to the network's input, such as by its normalisation.

    Returns
    -------
    Feature
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

    def read_activations(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
        weights = next(network.parameters(), None)
        dtype = torch.float32 if weights is None else weights.dtype
        batch = torch.from_numpy(np.ascontiguousarray(np.moveaxis(image, 2, 0))[None]).to(dtype) / 255
        outputs: list[torch.Tensor] = []
        hook = parts[layer].register_forward_hook(lambda module, inputs, output: outputs.append(output))
        try:
            with torch.no_grad():
                network(batch if prepare is None else prepare(batch))
        finally:
            hook.remove()
        if not outputs or not isinstance(outputs[-1], torch.Tensor) or outputs[-1].ndim != 4:
            shape = "nothing" if not outputs else tuple(getattr(outputs[-1], "shape", ()))
            raise InvalidInput(f"Layer {layer} gives {shape}; expected (1, C, h, w), as convolutions do.")
        positions = torch.from_numpy(2 * layout.positions - 1).to(outputs[-1].dtype)[None, None]
        sampled = torch.nn.functional.grid_sample(
            outputs[-1], positions, padding_mode="border", align_corners=False
        )
        return np.ascontiguousarray(sampled[0, :, 0].T.numpy(), np.float64)

    read_activations.__name__ = f"{type(network).__name__}.{layer}"
    return read_activations
