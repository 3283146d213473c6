"""Servers in the process of the test."""

import pytest


@pytest.fixture(autouse=True)
def patience(patient_server):
    """Wait for new answers in all tests of this folder."""
