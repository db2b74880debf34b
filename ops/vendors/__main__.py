"""`python -m ops.vendors`: the vendor simulator as a process, until it is told to stop."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ops.vendors.config import ConfigError
from ops.vendors.journal import JournalError
from ops.vendors.json_body import BodyError, read_object
from ops.vendors.server import VendorSimulator


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. Returns 0, or 2 with a sentence when it cannot start."""
    options = _parser().parse_args(arguments)
    try:
        simulator = VendorSimulator(
            port=options.port,
            seed=options.seed,
            record_file=options.record_file,
            configs=_configs(options.config),
        )
        simulator.start()
    except (ConfigError, BodyError, JournalError, OSError, OverflowError) as exc:
        print(f"the vendor simulator cannot start: {exc}", file=sys.stderr)
        return 2
    told_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_stop.set())
    if options.port_file is not None:
        _write_whole(options.port_file, f"{simulator.port}\n")
    print(json.dumps({"url": simulator.url, "port": simulator.port, "pid": os.getpid()}), flush=True)
    told_to_stop.wait()
    simulator.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.vendors", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes any free port")
    parser.add_argument("--port-file", type=Path, help="the chosen port is written here once it listens")
    parser.add_argument("--seed", type=int, default=0, help="what chance is drawn from")
    parser.add_argument("--record-file", type=Path, help="keep the record here; an earlier one is read first")
    parser.add_argument("--config", default="{}", help='JSON, such as {"helpdesk": {"latency_s": 0.05}}')
    return parser


def _configs(text: str) -> dict[str, dict[str, Any]]:
    configs = read_object(text.encode())
    for name, changes in configs.items():
        if not isinstance(changes, dict):
            raise ConfigError(f"the configuration of {name} must be a JSON object")
    return configs


def _write_whole(path: Path, content: str) -> None:
    """Whoever waits for the file finds it whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(content)
    draft.replace(path)


if __name__ == "__main__":
    raise SystemExit(main())
