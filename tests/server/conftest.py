"""Servers in the process of the test."""

import pytest


@pytest.fixture(autouse=True)
def patience(patient_server):
    """Use `patient_server` in all tests of this folder."""
