import type { EngineConfig } from "../core/core.js";
import type { Manifest } from "../weights/manifest.js";
import { defaultThreads } from "./threads.js";

/**
 * Maximum seconds of a step on a GPU. The page is drawn by the same GPU, and systems reset a GPU
 * that computes for too long: Windows after 2 s.
 */
const STEP_SECONDS = 1;
// Bytes of the KV cache and of recurrent state, if no number of tokens is set.
const CACHE_BYTES = 2 ** 30;
const PAGE = 16; // tokens in a page of the KV cache
const BATCH = 8; // the core's default of max_batch
// What the core takes for snapshots of a recurrent state (engine/cache/kv_cache.cc): a share of the
// bytes of the KV cache, and at least a few slots.
const SNAPSHOT_SHARE = 0.25;
const FEWEST_SNAPSHOTS = 2;

/**
 * Compute the engine's limits for a device (undefined: without a GPU). The caller's own limits take
 * precedence.
 */
export function engineLimits(
  limits: EngineConfig,
  manifest: Manifest,
  gpu: GPUDevice | undefined,
): EngineConfig {
  if (gpu === undefined) {
    return withCacheSize({ threads: defaultThreads(), ...limits }, manifest, undefined);
  }
  const given = { max_step_seconds: STEP_SECONDS, ...limits };
  return withCacheSize(given, manifest, gpu.limits.maxStorageBufferBindingSize);
}

/**
 * Return limits with a KV cache that fits: each layer of it is one buffer of the GPU. The slots of
 * a recurrent state are taken from the same bytes, so that a hybrid takes no more than others.
 *
 * @param most maximum bytes of a buffer; undefined without a GPU.
 */
function withCacheSize(
  limits: EngineConfig,
  { memory, deployment }: Manifest,
  most: number | undefined,
): EngineConfig {
  const { kv_per_token: bytes = 0, kv_layers: layers = 1, slot = 0 } = memory;
  if (limits.kv_tokens !== undefined || bytes === 0) return limits;
  const context = limits.context ?? deployment.context ?? 0;
  const batch = limits.max_batch ?? Math.min(BATCH, deployment.max_batch ?? BATCH);
  const fits = most === undefined ? Infinity : (most * layers) / bytes;
  const perToken = slot === 0 ? bytes : bytes * (1 + SNAPSHOT_SHARE);
  const room = Math.max(0, CACHE_BYTES - slot * (batch + FEWEST_SNAPSHOTS));
  const tokens = Math.min(batch * context, fits, Math.max(room / perToken, context));
  return { ...limits, kv_tokens: Math.floor(tokens / PAGE) * PAGE };
}
