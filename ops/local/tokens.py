"""Fills the lanes' secrets, as an operator does once after a first deploy: the simulators take any token."""

from __future__ import annotations

import json

from ops.local.clients import Clients
from shared.contract import names

TOKENS = json.dumps({"helpdesk": "local-token", "openai": "local-token"})


def fill(clients: Clients, stage: str) -> int:
    """Give every empty secret of the stage its tokens; returns how many were filled."""
    manager = clients.of("secretsmanager")
    filled = 0
    for page in manager.get_paginator("list_secrets").paginate():
        for secret in page["SecretList"]:
            if not secret["Name"].startswith(names.secret(stage, "")):
                continue
            if manager.get_secret_value(SecretId=secret["Name"])["SecretString"] in ("", "{}"):
                manager.put_secret_value(SecretId=secret["Name"], SecretString=TOKENS)
                filled += 1
    return filled
