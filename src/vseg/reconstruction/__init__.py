"""Maps from responses, by the paper's cost: a loss over pairs plus a penalty on rough maps.

reconstruct           reconstruct() and reconstruct_each()
losses                the loss of one pair: value, slope, curvature
kernels               the smoothness penalty as a matrix over locations
objective             loss and penalty as flat arrays
solvers               coordinate descent (the default) and the paper's exponentiated gradient
smoothness_selection  choose the smoothness λ, and the kernel, by held-out likelihood
segment_selection     choose the number of segments K
bootstrap             intervals from resampled trials, blocks or participants
online                maps that follow the responses one by one
"""
