"""Fills the lanes' secrets, as an operator does once after a first deploy: the simulators take any token, and the
senders of events have keys of their own."""

from __future__ import annotations

import json

from ops.local.clients import Clients
from shared.contract import names

TOKENS = json.dumps({"helpdesk": "local-token", "openai": "local-token"})
SENDERS = {"acme": "local-key-of-acme-for-nobody-but-this-machine", "bolt": "local-key-of-bolt-for-this-machine-alone"}
"""Tenants that may send events here, and what they sign with."""


def fill(clients: Clients, stage: str) -> int:
    """Give every empty secret of the stage its tokens; returns how many were filled."""
    manager = clients.of("secretsmanager")
    filled = 0
    for page in manager.get_paginator("list_secrets").paginate():
        for secret in page["SecretList"]:
            if not secret["Name"].startswith(names.secret(stage, "")):
                continue
            if manager.get_secret_value(SecretId=secret["Name"])["SecretString"] in ("", "{}"):
                keys = secret["Name"].endswith(names.intake(""))
                manager.put_secret_value(SecretId=secret["Name"], SecretString=json.dumps(SENDERS) if keys else TOKENS)
                filled += 1
    return filled
