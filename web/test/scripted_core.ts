import {
  type Core,
  CoreError,
  type CoreEvent,
  type CoreMask,
  type CoreParams,
  type CoreStats,
} from "../src/core/core.js";

/** The embedding of a prompt: four numbers of length 5. */
export function embeddingOf(prompt: readonly number[]): Float32Array {
  return Float32Array.of(3, prompt.length % 2 === 0 ? 4 : -4, 0, 0);
}

/** Returns the n-th output token after a prompt. */
export type Script = (prompt: readonly number[], n: number, params: CoreParams) => number;

interface Request {
  readonly id: number;
  readonly prompt: readonly number[];
  readonly params: CoreParams;
  readonly mask: CoreMask | undefined;
  sampled: number;
}

const DEFAULTS: CoreParams = {
  maxTokens: 0,
  minTokens: 0,
  stopIds: [],
  temperature: 1,
  dynamicRange: 0,
  dynamicExponent: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  typicalP: 1,
  topNSigma: 0,
  xtcProbability: 0,
  xtcThreshold: 0.1,
  mirostatTau: 0,
  mirostatEta: 0.1,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  dryMultiplier: 0,
  dryBase: 1.75,
  dryAllowedLength: 2,
  dryRange: 0,
  dryBreakers: [],
  seed: 0,
  bias: new Map(),
  allowed: [],
  badWords: [],
  topLogprobs: 0,
  promptLogprobs: -1,
  priority: 0,
  user: 0,
  salt: 0,
  adapter: 0,
  maxDrafts: 0,
  prediction: [],
  embed: false,
  source: [],
};

/**
 * A core whose tokens a script determines; requests, batches, aborts and failures are as in the
 * real core.
 */
export class ScriptedCore implements Core {
  readonly metadata;
  readonly threads = 1;
  /** The requests that were added, in order. */
  readonly added: { prompt: readonly number[]; params: CoreParams }[] = [];
  /** An error with which the next step and every later call fail. */
  breaks: CoreError | undefined;
  destroyed = false;
  mostAtOnce = 0;
  readonly #script: Script;
  #requests: Request[] = [];
  #aborted: CoreEvent[] = [];

  constructor(script: Script, { vocabSize = 1024, context = 512 } = {}) {
    this.#script = script;
    this.metadata = {
      name: "scripted",
      vocab_size: vocabSize,
      context,
      page_size: 16,
      entries: [],
    };
  }

  /** Number of requests that have not ended. */
  get open(): number {
    return this.#requests.length;
  }

  paramsDefault(): CoreParams {
    return { ...DEFAULTS };
  }

  add(id: number, tokens: Int32Array, params: CoreParams, mask?: CoreMask): void {
    if (this.breaks) throw this.breaks;
    if (params.adapter !== 0) throw new CoreError("invalid_argument", "there are no adapters");
    this.added.push({ prompt: [...tokens], params });
    this.#requests.push({ id, prompt: [...tokens], params, mask, sampled: 0 });
  }

  abort(id: number): void {
    const index = this.#requests.findIndex((one) => one.id === id);
    if (index < 0) throw new CoreError("not_found", `there is no request ${id}`);
    this.#requests.splice(index, 1);
    this.#aborted.push({ ...event(id, -1), finish: "abort" });
  }

  async step(): Promise<CoreEvent[]> {
    await Promise.resolve();
    if (this.breaks) throw this.breaks;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#requests.length);
    const fresh = this.#requests.filter(({ sampled }) => sampled === 0);
    const events = [
      ...this.#aborted.splice(0),
      ...fresh.flatMap(promptEvents),
      ...this.#requests.map((one) => this.#next(one)),
    ];
    const ended = new Set(events.filter(({ finish }) => finish).map(({ id }) => id));
    this.#requests = this.#requests.filter(({ id }) => !ended.has(id));
    return events;
  }

  stats(): CoreStats {
    return { running: this.#requests.length } as CoreStats;
  }

  clearCache(): void {
    // no request is left
  }

  destroy(): void {
    this.destroyed = true;
  }

  #next(request: Request): CoreEvent {
    const { id, prompt, params } = request;
    if (params.embed) return { ...event(id, -1), finish: "done", embedding: embeddingOf(prompt) };
    const token = this.#masked(request, this.#script(prompt, request.sampled, params));
    request.sampled += 1;
    const complete = request.mask?.accept(token) === true;
    const top = Array.from({ length: params.topLogprobs }, (_, k) => ({
      token: token + k,
      logprob: -0.5 - k,
    }));
    const sampled = {
      ...event(id, token),
      logprob: -0.5,
      top,
      cachedTokens: Math.min(3, prompt.length),
    };
    if (complete || params.stopIds.includes(token)) return { ...sampled, finish: "stop" };
    if (request.sampled === params.maxTokens) return { ...sampled, finish: "length" };
    return sampled;
  }

  /** Return the token, or the next one that the request's mask allows. */
  #masked({ mask }: Request, token: number): number {
    const { vocab_size: size } = this.metadata;
    const bits = new Uint32Array(Math.ceil(size / 32));
    if (!mask || mask.fill(bits) === true) return token;
    const allowed = (id: number): boolean => (((bits[id >> 5] ?? 0) >>> (id & 31)) & 1) === 1;
    for (let k = 0; k < size; k += 1) if (allowed((token + k) % size)) return (token + k) % size;
    throw new Error("the mask allows nothing");
  }
}

/** Log probabilities that tell the token's place: -1.25 for the second. */
function promptEvents({ id, prompt, params }: Request): CoreEvent[] {
  if (params.promptLogprobs < 0) return [];
  return prompt.slice(1).map((token, i) => ({
    ...event(id, token),
    prompt: true,
    logprob: -i - 1.25,
    top: Array.from({ length: params.promptLogprobs }, (_, k) => ({
      token: token + k,
      logprob: -i - 1.25 - k,
    })),
  }));
}

function event(id: number, token: number): CoreEvent {
  return {
    id,
    token,
    logprob: 0,
    top: [],
    prompt: false,
    cachedTokens: 0,
    draftedTokens: 0,
    acceptedTokens: 0,
    queueSeconds: 0.001,
    prefillSeconds: 0.01,
    decodeSeconds: 0.1,
  };
}
