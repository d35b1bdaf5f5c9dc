import type { Instance } from "./instance.js";
import type { Arguments, Heap } from "./memory.js";
import { EVENT } from "./records.js";

export type CoreFinish = "stop" | "length" | "abort" | "error" | "done";

export interface TopLogprob {
  token: number;
  logprob: number;
}

/** A token of a request, or its end: the C struct wherry_event. */
export interface CoreEvent {
  id: number;
  token: number; // id of the token; -1: the event has none
  logprob: number; // natural logarithm of the token's probability at temperature 1
  top: TopLogprob[];
  prompt: boolean; // whether this is a token of the prompt, with its logprob
  finish?: CoreFinish; // why the request ended; undefined: more events follow
  error?: string; // message of a failure, with finish "error"
  embedding?: Float32Array; // embedding of the prompt, with finish "done"
  cachedTokens: number; // number of prompt tokens that were found in the prefix cache
  draftedTokens: number;
  acceptedTokens: number;
  queueSeconds: number;
  prefillSeconds: number;
  decodeSeconds: number;
}

/** Names of the values of the C enum wherry_finish. */
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

/** Write events for another module, EVENT.bytes each; their embeddings are as valid as `args`. */
export function writeEvents(
  heap: Heap,
  at: number,
  events: readonly CoreEvent[],
  args: Arguments,
): void {
  heap.bytes(at, events.length * EVENT.bytes).fill(0);
  const embeddings = events.map(({ embedding }) => (embedding ? args.floats(embedding) : 0));
  const view = heap.view(); // after the allocations, which may have grown the memory
  for (const [i, event] of events.entries()) {
    writeEvent(view, at + i * EVENT.bytes, event, embeddings[i] ?? 0);
  }
}

function writeEvent(view: DataView, record: number, event: CoreEvent, embedding: number): void {
  const set = (name: string, value: number, index = 0): void =>
    EVENT.set(view, record, name, value, index);
  set("id", event.id);
  set("token", event.token);
  set("finish", FINISHES.indexOf(event.finish));
  set("prompt", event.prompt ? 1 : 0);
  set("embedding", embedding);
  set("n_embedding", event.embedding?.length ?? 0);
  set("logprob", event.logprob);
  set("n_top", event.top.length);
  event.top.forEach(({ token, logprob }, k) => {
    set("top_ids", token, k);
    set("top_logprobs", logprob, k);
  });
  set("cached_tokens", event.cachedTokens);
  set("drafted_tokens", event.draftedTokens);
  set("accepted_tokens", event.acceptedTokens);
  set("queue_seconds", event.queueSeconds);
  set("prefill_seconds", event.prefillSeconds);
  set("decode_seconds", event.decodeSeconds);
}
