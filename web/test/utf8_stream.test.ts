import assert from "node:assert/strict";
import { it } from "node:test";

import { Utf8Stream } from "../src/text/utf8_stream.js";
import { Random } from "./random.js";

function decoded(bytes: Uint8Array, eachByte: boolean, random: Random): string {
  const stream = new Utf8Stream({ eachByte });
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + random.below(4);
    text += stream.push(bytes.subarray(at, end));
    at = end;
  }
  return text + stream.flush();
}

it("decodes random bytes as the platform does, however they are cut", () => {
  const random = new Random(1);
  const platform = new TextDecoder("utf-8", { ignoreBOM: true });
  const lead = [0x41, 0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xe4, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 0xbb];
  for (let round = 0; round < 3000; round += 1) {
    const bytes = Uint8Array.from({ length: random.below(12) }, () =>
      random.below(3) > 0 ? (lead[random.below(lead.length)] ?? 0) : random.below(256),
    );
    assert.equal(decoded(bytes, false, random), platform.decode(bytes), String(bytes));
  }
});

it("replaces each byte of a damaged character where decoders with byte fallback do", () => {
  const bytes = Uint8Array.of(0xe4, 0xb8, 0x61, 0xf0, 0x9f, 0x8e);
  assert.equal(decoded(bytes, true, new Random(2)), "\uFFFD\uFFFDa\uFFFD\uFFFD\uFFFD");
});
