"""`python -m ops.cli` is `penstock`."""

from __future__ import annotations

from ops.cli.main import app

app()
