"""One hypothesis profile for all tests: the same examples in every run, and no clock."""

from hypothesis import settings

settings.register_profile("vseg", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("vseg")
