"""A producer and a consumer with python-ndn, for the tests of the relay.

Usage: python_ndn.py producer|consumer SOCKET

The producer prints `ready` when its prefixes are registered. The consumer prints one line for each exchange.
"""

import asyncio
import hashlib
import sys

from ndn import app, appv2, encoding, security, types
from ndn.app_support.segment_fetcher import segment_fetcher
from ndn.encoding import Component, Name
from ndn.transport.stream_face import UnixFace

OBJECT = b"".join(hashlib.sha256(n.to_bytes(4, "big")).digest() for n in range(31_250))  # one million bytes
SEGMENT = 8000


async def digest_is_right(name, sig, _):
    good = await security.sha256_digest_checker(name, sig)
    return types.ValidResult.PASS if good else types.ValidResult.FAIL


class Producer:
    def __init__(self, path):
        self.app = appv2.NDNApp(face=UnixFace(path))
        self.answers = 0

    def reply(self, reply, name, content, **meta):
        reply(self.app.make_data(name, content, security.DigestSha256Signer(), **meta))

    def text(self, name, _param, reply, _context):
        self.reply(reply, name, b"text", freshness_period=60_000)

    def longer(self, name, _param, reply, _context):
        self.reply(reply, name + [Component.from_str("newest")], b"newest", freshness_period=60_000)

    def count(self, name, _param, reply, _context):
        """Counts its answers, which are stale at once."""
        self.answers += 1
        self.reply(reply, name, str(self.answers).encode())

    def part(self, name, _param, reply, _context):
        prefix = Name.normalize("/py/object/v=1")
        number = Component.to_number(name[-1]) if len(name) > len(prefix) else 0
        segment = Component.from_segment(number)
        last = Component.from_segment((len(OBJECT) - 1) // SEGMENT)
        content = OBJECT[number * SEGMENT : (number + 1) * SEGMENT]
        self.reply(reply, prefix + [segment], content, freshness_period=60_000, final_block_id=last)

    async def main(self):
        handlers = {"text": self.text, "longer": self.longer, "count": self.count, "object": self.part}
        handlers["silent"] = lambda *_: None
        for name, handler in handlers.items():
            self.app.attach_handler(f"/py/{name}", handler)
            assert await self.app.register(f"/py/{name}"), name
        print("ready", flush=True)

    def run(self):
        self.app.run_forever(after_start=self.main())


class Consumer:
    def __init__(self, path):
        self.path = path
        self.app = appv2.NDNApp(face=UnixFace(path))

    async def show(self, name, **how):
        try:
            found, content, _ = await self.app.express(name, digest_is_right, **{"lifetime": 10_000, **how})
            print(f"{name}: {Name.to_str(found)} {len(content)} {bytes(content[:6])!r}")
        except types.InterestNack as nack:
            print(f"{name}: Nack {nack.reason}")
        except types.InterestTimeout:
            print(f"{name}: timeout")

    async def main(self):
        await self.show("/py/text/1")
        await self.show("/py/longer", can_be_prefix=True)
        # Its Data has a longer name, which does not match.
        await self.show("/py/longer/exactly", lifetime=300)
        for fresh in [False, False, True, False]:
            await self.show("/py/count/1", must_be_fresh=fresh)
        await self.show("/py/silent/1", lifetime=300)
        await self.show("/elsewhere")
        self.app.shutdown()

    async def fetch(self, older):
        """Fetches the object with the older interface, which has a fetcher of segments."""
        parts = [bytes(part) async for part in segment_fetcher(older, "/py/object", timeout=10_000)]
        print(f"object: {len(parts)} segments {b''.join(parts) == OBJECT}")
        older.shutdown()

    def run(self):
        self.app.run_forever(after_start=self.main())
        older = app.NDNApp(face=UnixFace(self.path), keychain=security.KeychainDigest())
        older.run_forever(after_start=self.fetch(older))


role = {"producer": Producer, "consumer": Consumer}[sys.argv[1]]
role(sys.argv[2]).run()
