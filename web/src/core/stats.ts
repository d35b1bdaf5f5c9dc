import type { Gpu } from "./gpu.js";
import type { Instance } from "./instance.js";
import { STATS } from "./records.js";

/** The counters of the C struct wherry_stats, and those of the device and the instance. */
export interface CoreStats {
  steps: number;
  promptTokens: number;
  prefillTokens: number;
  cachedTokens: number;
  decodeTokens: number;
  recomputedTokens: number;
  draftedTokens: number;
  acceptedTokens: number;
  finished: number;
  preemptions: number;
  waiting: number;
  prefilling: number;
  running: number;
  pagesTotal: number;
  pagesFree: number;
  pagesCached: number;
  pageSize: number;
  modelSeconds: number;
  sampleSeconds: number;
  hostSeconds: number;
  failedSteps: number;
  candidateRows: number;
  wholeRows: number;
  readbackBytes: number;
  dispatches: number; // number of kernels in the last step; 0 without a GPU
  deviceBytes: number; // bytes of the GPU's buffers
  memoryBytes: number; // bytes of the instance's memory
}

export function readStats(instance: Instance, engine: number, gpu: Gpu | undefined): CoreStats {
  return instance.with((args) => {
    const record = args.block(STATS.bytes);
    STATS.set(instance.heap.view(), record, "size", STATS.bytes);
    instance.check(instance.exports.wherry_engine_stats(engine, record));
    const view = instance.heap.view();
    const get = (name: string): number => STATS.get(view, record, name);
    return {
      steps: get("steps"),
      promptTokens: get("prompt_tokens"),
      prefillTokens: get("prefill_tokens"),
      cachedTokens: get("cached_tokens"),
      decodeTokens: get("decode_tokens"),
      recomputedTokens: get("recomputed_tokens"),
      draftedTokens: get("drafted_tokens"),
      acceptedTokens: get("accepted_tokens"),
      finished: get("finished"),
      preemptions: get("preemptions"),
      waiting: get("waiting"),
      prefilling: get("prefilling"),
      running: get("running"),
      pagesTotal: get("pages_total"),
      pagesFree: get("pages_free"),
      pagesCached: get("pages_cached"),
      pageSize: get("page_size"),
      modelSeconds: get("model_seconds"),
      sampleSeconds: get("sample_seconds"),
      hostSeconds: get("host_seconds"),
      failedSteps: get("failed_steps"),
      candidateRows: get("candidate_rows"),
      wholeRows: get("whole_rows"),
      readbackBytes: get("readback_bytes"),
      dispatches: gpu?.launches ?? 0,
      deviceBytes: gpu?.bytes ?? 0,
      memoryBytes: instance.heap.byteLength,
    };
  });
}
