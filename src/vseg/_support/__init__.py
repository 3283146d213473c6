"""Helpers that know nothing of vision: atomic files, seeds, compilation with numba, user code, reading files."""
