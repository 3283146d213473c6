"""Evidence for vseg: the paper's figures regenerated, and BSDS500's annotators as observers. Not part of the wheel."""
