"""Clients that try to hurt a server on this machine, one of each kind, until they are ended.

    python benchmarks/hostile.py 127.0.0.1:PORT [KIND ...]

Each kind has an address of its own, and bounded numbers of connections and bytes.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

MALFORMED = rb'{"texts": ["\ud800"]}'
MANY_LABELS = json.dumps({"text": "x", "labels": [f"{at}" for at in range(20_000)]}).encode()
LARGE = b'{"text": "%s", "labels": ["a", "b"]}\n' % (b"x" * 1000) * 45_000
COSTLY = json.dumps({"texts": ["x" * 200] * 64, "samples": 32}).encode()


class Place:
    """A server, reached from one address."""

    def __init__(self, place: str, address: str) -> None:
        host, _, port = place.rpartition(":")
        self.host, self.port, self.address = host, int(port), address

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection(self.host, self.port, local_addr=(self.address, 0))

    async def send(self, path: str, body: bytes | None = None, length: int | None = None) -> asyncio.StreamWriter:
        """Send a request, or the beginning of one; return the connection, unread."""
        return (await self.begin(path, body, length))[1]

    async def begin(
        self, path: str, body: bytes | None = None, length: int | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request, or the beginning of one."""
        reader, writer = await self.connect()
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
        length = len(body or b"") if length is None else length
        head += f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        writer.write(head.encode() + (body or b""))
        return reader, writer

    async def ask(self, path: str, body: bytes | None = None) -> bytes:
        """Send a request, and return the beginning of the answer."""
        reader, writer = await self.begin(path, body)
        try:
            return await reader.read(4096)
        finally:
            writer.close()


async def malformed(place: Place) -> None:
    """Send texts that no tokenizer takes, to fail the batches of others."""
    await place.ask("/api/predict", MALFORMED)
    await asyncio.sleep(0.02)


async def many_labels(place: Place) -> None:
    """Upload sets with so many labels that their pairs take gigabytes, and large files; ask for many orders of them."""
    await place.ask("/api/datasets", MANY_LABELS)
    answer = await place.ask("/api/datasets", LARGE)
    if b"201" in answer[:20]:
        key = json.loads(answer[answer.index(b"{") :])["id"]
        await place.ask(f"/api/datasets/{key}/augment?orders=20")
    await asyncio.sleep(1)


async def idle(place: Place) -> None:
    """Hold 600 connections that send nothing."""
    opened = []
    for _ in range(600):
        with suppress(OSError):
            opened.append((await place.connect())[1])
    await asyncio.sleep(3)
    for writer in opened:
        writer.close()


async def leaving(place: Place) -> None:
    """Ask for far too much, and leave."""
    writers = [await place.send("/api/predict", COSTLY) for _ in range(5)]
    await asyncio.sleep(0.3)
    for writer in writers:
        writer.close()


async def slow(place: Place) -> None:
    """Begin 20 uploads that send a byte a second, and four downloads that are not read."""
    answer = await place.ask("/api/datasets", LARGE[: len(LARGE) // 10])
    writers = []
    if b"201" in answer[:20]:
        key = json.loads(answer[answer.index(b"{") :])["id"]
        for _ in range(4):
            _, writer = await place.begin(f"/api/datasets/{key}/augment?orders=20")
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writers.append(writer)
    uploads = [await place.send("/api/datasets", LARGE[:100_000], len(LARGE)) for _ in range(20)]
    for _ in range(10):
        for writer in uploads:
            writer.write(b"x")
        await asyncio.sleep(1)
    for writer in writers + uploads:
        writer.close()


KINDS: dict[str, Callable[[Place], Awaitable[None]]] = {
    one.__name__: one for one in (malformed, many_labels, idle, leaving, slow)
}


async def for_ever(place: Place, act: Callable[[Place], Awaitable[None]]) -> None:
    while True:
        try:
            await act(place)
        except (OSError, EOFError, ValueError):
            await asyncio.sleep(0.1)  # it was refused; try again


async def main(place: str, *kinds: str) -> None:
    acts = [(at, KINDS[name]) for at, name in enumerate(KINDS, 1) if name in (kinds or KINDS)]
    await asyncio.gather(*(for_ever(Place(place, f"127.3.0.{at}"), act) for at, act in acts))


if __name__ == "__main__":
    if not socket.gethostbyname(sys.argv[1].rpartition(":")[0]).startswith("127."):
        sys.exit("only a server on this machine")
    asyncio.run(main(*sys.argv[1:]))
