"""The lanes a stage was deployed with, as its parameter says."""

from __future__ import annotations

import json
from collections.abc import Mapping

from botocore.exceptions import ClientError

from shared.adapters.aws.clients import client
from shared.contract import names
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec


def deployed_lanes(stage: str) -> Mapping[str, LaneSpec]:
    """Every lane of the stage; a stage that was never deployed is named."""
    parameter = names.lanes_parameter(stage)
    try:
        text = client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    except ClientError as exc:
        if exc.response.get("Error", {}).get("Code") == "ParameterNotFound":
            raise BadInput("stage", f"{stage!r} has no parameter {parameter}: is it deployed?") from None
        raise
    return {name: LaneSpec.from_mapping(name, values) for name, values in json.loads(text).items()}
