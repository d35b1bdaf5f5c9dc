import type { Instance } from "./instance.js";
import { EVENT } from "./records.js";

export type CoreFinish = "stop" | "length" | "abort" | "error" | "done";

export interface TopLogprob {
  token: number;
  logprob: number;
}

/** wherry_event: a token of a request, or its end. */
export interface CoreEvent {
  id: number;
  token: number; // -1: none
  logprob: number; // natural logarithm, at temperature 1
  top: TopLogprob[];
  prompt: boolean; // a token of the prompt, with its logprob
  finish?: CoreFinish; // undefined: more follow
  error?: string; // with finish "error"
  embedding?: Float32Array; // with finish "done"
  cachedTokens: number; // of the prompt, found in the prefix cache
  draftedTokens: number;
  acceptedTokens: number;
  queueSeconds: number;
  prefillSeconds: number;
  decodeSeconds: number;
}

/** By wherry_finish. */
const FINISHES: readonly (CoreFinish | undefined)[] = [
  undefined,
  "stop",
  "length",
  "abort",
  "error",
  "done",
];

/** Copies `n` events out of the instance's memory. */
export function readEvents(instance: Instance, at: number, n: number): CoreEvent[] {
  return Array.from({ length: n }, (_, i) => readEvent(instance, at + i * EVENT.bytes));
}

function readEvent(instance: Instance, record: number): CoreEvent {
  const view = instance.heap.view();
  const get = (name: string, index = 0): number => EVENT.get(view, record, name, index);
  const finish = FINISHES[get("finish")];
  const top = Array.from({ length: get("n_top") }, (_, k) => ({
    token: get("top_ids", k),
    logprob: get("top_logprobs", k),
  }));
  const elements = get("n_embedding");
  return {
    id: get("id"),
    token: get("token"),
    logprob: get("logprob"),
    top,
    prompt: get("prompt") !== 0,
    ...(finish && { finish }),
    ...(finish === "error" && { error: instance.lastError() }),
    ...(elements > 0 && { embedding: instance.heap.floats(get("embedding"), elements).slice() }),
    cachedTokens: get("cached_tokens"),
    draftedTokens: get("drafted_tokens"),
    acceptedTokens: get("accepted_tokens"),
    queueSeconds: get("queue_seconds"),
    prefillSeconds: get("prefill_seconds"),
    decodeSeconds: get("decode_seconds"),
  };
}
