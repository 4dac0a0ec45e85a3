// A program of NDNts, connected to a forwarder by WebSocket.
//   node ndnts.mjs URL serve PREFIX        serves /PREFIX/…: 8,000 bytes of the name's hash
//   node ndnts.mjs URL fetch PREFIX COUNT  fetches COUNT such Data at a time and checks them

import { createHash } from "node:crypto";

import { consume, produce } from "@ndn/endpoint";
import { Data, Interest, Name } from "@ndn/packet";
import { WsTransport } from "@ndn/ws-transport";

const LENGTH = 8_000;

function content(name) {
  const hash = createHash("sha256").update(String(name)).digest();
  return Buffer.alloc(LENGTH, hash);
}

const [url, role, prefix, count] = process.argv.slice(2);
// Without a route: the program itself serves the prefix.
const face = await WsTransport.createFace(role === "serve" ? { addRoutes: [] } : {}, url);
if (role === "serve") {
  produce(new Name(prefix), async (interest) =>
    new Data(interest.name, Data.FreshnessPeriod(1), content(interest.name)));
  console.log("serving");
} else {
  const names = Array.from({ length: Number(count) }, (_, at) => `${prefix}/${at}`);
  const fetched = await Promise.all(names.map((name) => consume(new Interest(name))));
  const right = fetched.filter((data) => content(data.name).equals(Buffer.from(data.content)));
  console.log(`${right.length} of ${count} Data are right`);
  face.close();
}
