"""boto3 clients that can only reach one local stack, whatever the caller's AWS settings are."""

from __future__ import annotations

import os
from typing import Any

import boto3
import botocore.session
from botocore.config import Config

ACCOUNT = "000000000000"
REGION = "us-east-1"
SECRET_KEY = "local"
ANSWER_S = 150
"""An invocation answers at its end; a sweep may take two minutes."""
# (name in a file, variable, default, conversion): profiles and configuration files play no part here.
_NO_FILES: dict[str, Any] = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


class Clients:
    """Clients of one endpoint, each made once."""

    def __init__(self, *, endpoint: str, access_key: str, region: str = REGION, account: str = ACCOUNT) -> None:
        self.endpoint = endpoint
        self.region = region
        self.account = account
        core = botocore.session.Session(session_vars=_NO_FILES)
        core.set_credentials(access_key, SECRET_KEY)
        self._session = boto3.Session(botocore_session=core, region_name=region)
        self._made: dict[str, Any] = {}

    def of(self, service: str) -> Any:
        """The client of a service."""
        if service not in self._made:
            self._made[service] = self._session.client(
                service,  # type: ignore[call-overload]  # one literal per service, and here it is a variable
                endpoint_url=self.endpoint,
                config=Config(retries={"total_max_attempts": 2}, connect_timeout=5, read_timeout=ANSWER_S, proxies={}),
            )
        return self._made[service]
