import type { EngineConfig } from "../core/core.js";
import type { Manifest } from "../weights/manifest.js";
import { defaultThreads } from "./threads.js";

/**
 * Maximum seconds of a step on a GPU. The page is drawn by the same GPU, and systems reset a GPU
 * that computes for too long: Windows after 2 s.
 */
const STEP_SECONDS = 1;
const CACHE_BYTES = 2 ** 30; // bytes of the KV cache if no number of tokens is set
const PAGE = 16; // tokens in a page of the KV cache
const BATCH = 8; // the core's default of max_batch

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
 * Return limits with a KV cache that fits: each layer of it is one buffer of the GPU.
 *
 * @param most maximum bytes of a buffer; undefined without a GPU.
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
