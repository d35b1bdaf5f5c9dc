/** Tests how many tokens a page's KV cache gets, from the manifest and the GPU. */
import assert from "node:assert/strict";
import { it } from "node:test";

import { engineLimits } from "../src/engine/engine_limits.js";
import type { Manifest } from "../src/weights/manifest.js";

const GIB = 2 ** 30; // bytes that a page gives to a KV cache

function tokens(memory: Manifest["memory"], most = 4 * GIB, maxBatch = 8): number | undefined {
  const deployment = { context: 2048, max_batch: maxBatch };
  const manifest = { memory, deployment } as unknown as Manifest;
  const gpu = { limits: { maxStorageBufferBindingSize: most } } as unknown as GPUDevice;
  return engineLimits({}, manifest, gpu).kv_tokens;
}

it("bounds the KV cache by its bytes, and a layer of it by the GPU's largest buffer", () => {
  assert.equal(tokens({ kv_per_token: 1024 }), 8 * 2048); // all requests at their full length
  assert.equal(tokens({ kv_per_token: 2 ** 18 }), GIB / 2 ** 18);
  assert.equal(tokens({ kv_per_token: 2 ** 18, kv_layers: 2 }, 2 ** 28), 2 ** 11);
  assert.equal(tokens({ kv_per_token: 2 ** 20 }), 2048); // a request has its full length
});

it("takes the slots of a recurrent state, and its snapshots, from the same bytes", () => {
  const slot = 20 * 2 ** 20;
  const context = tokens({ kv_per_token: 2 ** 18, slot });
  assert.ok(context !== undefined);
  const page = 16 * 2 ** 18;
  const fixed = 10 * slot; // of 8 requests, and 2 of snapshots
  const cache = context * 2 ** 18 * 1.25; // a quarter for snapshots
  assert.ok(fixed + cache <= GIB && fixed + cache + 1.25 * page > GIB);
  // Fewer requests leave more.
  assert.ok((tokens({ kv_per_token: 2 ** 18, slot }, 4 * GIB, 2) ?? 0) > context);
  // A state that takes all leaves the tokens of one request.
  assert.equal(tokens({ kv_per_token: 2 ** 18, slot: GIB }), 2048);
});
