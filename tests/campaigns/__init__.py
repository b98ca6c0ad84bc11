"""Campaigns against the promises: `python -m tests.campaigns.NAME`, seeded; the short form of each is a test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where conftest is, as pytest has it
