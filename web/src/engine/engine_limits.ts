import type { EngineConfig } from "../core/core.js";
import type { Manifest } from "../weights/manifest.js";
import { defaultThreads } from "./threads.js";

/**
 * Of a GPU, which the page is drawn by, too, and which browsers and systems take away from who keeps it
 * for long: Windows after 2 s.
 */
const STEP_SECONDS = 1;
const CACHE_BYTES = 2 ** 30; // of the KV cache, without a number of tokens
const PAGE = 16; // tokens
const BATCH = 8; // the core's own choice of max_batch

/** The engine's limits on a device; undefined: without a GPU. What the person says goes before. */
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
 * Limits with a cache that fits: a layer of it is one buffer of the GPU.
 *
 * @param most bytes of a buffer; undefined without a GPU.
 */
function withCacheSize(
  limits: EngineConfig,
  { memory, deployment }: Manifest,
  most: number | undefined,
): EngineConfig {
  const { kv_per_token: bytes = 0, kv_layers: layers = 1 } = memory;
  if (limits.kv_tokens !== undefined || bytes === 0) return limits;
  const context = limits.context ?? deployment.context ?? 0;
  const batch = limits.max_batch ?? Math.min(BATCH, deployment.max_batch ?? BATCH);
  const fits = most === undefined ? Infinity : (most * layers) / bytes;
  const tokens = Math.min(batch * context, fits, Math.max(CACHE_BYTES / bytes, context));
  return { ...limits, kv_tokens: Math.floor(tokens / PAGE) * PAGE };
}
