"""Runs in a network namespace of its own: starts the engine there, and carries what comes to a door outside to it.

The engine listens on every interface and can be told nothing else; here there is none but loopback. The door is a
listening socket that was opened outside, on loopback: a socket stays in the network it was opened in.

python inside.py DOOR COMMAND...    until its standard input ends
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import subprocess
import sys
import tempfile

PORT = 8000
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1
"""SIOCGIFFLAGS, SIOCSIFFLAGS and IFF_UP, as Linux has them."""
CHUNK = 65536
ASK_AGAIN_S = 0.05


def loopback_up() -> None:
    """A new network has a loopback that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        (flags,) = struct.unpack("16xh", fcntl.ioctl(any_socket, GET_FLAGS, struct.pack("16sh", b"lo", 0))[:18])
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", flags | UP))


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction of one connection."""
    with contextlib.closing(writer), contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()


async def visitor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, both directions; at the end nobody hears what was cut off."""
    there, back = await asyncio.open_connection("127.0.0.1", PORT)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(carry(reader, back), carry(there, writer))


async def ready(engine: subprocess.Popen[bytes]) -> None:
    """Until the engine takes connections. Raises RuntimeError when it ends before."""
    while engine.poll() is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        except ConnectionError:
            await asyncio.sleep(ASK_AGAIN_S)
        else:
            writer.close()
            return
    raise RuntimeError(f"the engine ended with {engine.returncode}")


async def serve(door: socket.socket, engine: subprocess.Popen[bytes]) -> None:
    """Say so when it is open; close when whoever asked for it is gone."""
    await ready(engine)
    async with await asyncio.start_server(visitor, sock=door):
        print("open", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main(door: int, command: list[str]) -> None:
    """The engine never outlives its keeper."""
    loopback_up()
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [*command, "-port", str(PORT)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as engine,
    ):
        try:
            asyncio.run(serve(socket.socket(fileno=door), engine))
        finally:
            engine.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
