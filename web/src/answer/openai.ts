/** Answers in OpenAI's shapes. */
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatLogprobs,
  Completion,
  CompletionLogprobs,
  FinishReason,
  TopLogprob,
} from "../request/types.js";
import { CallReader, type Read } from "../tools/call_reader.js";
import type { Delta, LoggedToken } from "./choice.js";
import type { Generation } from "./generation.js";

/** How a request is answered: at once, or piece by piece. */
export interface Reply<Whole, Chunk> {
  /** Before the first token. */
  opening(generation: Generation): Chunk[];
  /** None where a delta adds nothing. */
  chunks(delta: Delta): Chunk[];
  /** After the last token. */
  closing(generation: Generation): Chunk[];
  whole(deltas: readonly Delta[], generation: Generation): Whole;
}

interface Head {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

function head(kind: string, model: string): Head {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id: `${kind}-${digits}`, created: Math.floor(Date.now() / 1000), model };
}

/** Answers to chats. */
export function chatReply(model: string): Reply<ChatCompletion, ChatCompletionChunk> {
  const shared = head("chatcmpl", model);
  const chunk = (choices: ChatCompletionChunk["choices"]): ChatCompletionChunk => ({
    ...shared,
    object: "chat.completion.chunk",
    choices,
  });
  let named = false; // see AskedTools
  const readers: CallReader[] = []; // of the choices, where there are tools
  return {
    opening: ({ plan: { params, tools, dropped } }) =>
      params.map((_, index) => {
        if (tools) readers.push(new CallReader(tools.several));
        named = tools?.named ?? false;
        const delta = { role: "assistant" as const, ...(!tools && { content: "" }) };
        const first = chunk([{ index, delta, finish_reason: null }]);
        return dropped > 0 && index === 0 ? { ...first, dropped_messages: dropped } : first;
      }),
    chunks({ index, text, logprobs, finish }) {
      const reader = readers[index];
      const before = reader?.count ?? 0;
      const read = reader?.push(text, finish !== null) ?? { text, calls: [] };
      const delta = deltaOf(read, before);
      const called = !named && (reader?.count ?? 0) > 0;
      const choice = { index, delta, finish_reason: finishOf(finish, called) };
      const logged = logprobs.length > 0 ? { logprobs: chatLogprobs(logprobs) } : {};
      const more = Object.keys({ ...delta, ...logged }).length > 0 || finish !== null;
      return more ? [chunk([{ ...choice, ...logged }])] : [];
    },
    closing: ({ plan, usage, timings }) =>
      plan.includeUsage ? [{ ...chunk([]), usage, timings }] : [],
    whole: (deltas, { plan, usage, timings }) => ({
      ...shared,
      object: "chat.completion",
      ...(plan.dropped > 0 && { dropped_messages: plan.dropped }),
      choices: deltas.map(({ index, text, logprobs, finish }) => {
        const { tools } = plan;
        const read = tools ? new CallReader(tools.several).push(text, true) : { text, calls: [] };
        return {
          index,
          message: messageOf(read),
          finish_reason: finishOf(finish, !tools?.named && read.calls.length > 0) ?? "stop",
          logprobs: plan.logprobs ? chatLogprobs(logprobs) : null,
        };
      }),
      usage,
      timings,
    }),
  };
}

type ChunkDelta = ChatCompletionChunk["choices"][number]["delta"];

/** @param before calls that were given out before. */
function deltaOf({ text, calls }: Read, before: number): ChunkDelta {
  return {
    ...(text && { content: text }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => ({ index: before + index, ...call })),
    }),
  };
}

function messageOf({ text, calls }: Read): ChatCompletion["choices"][number]["message"] {
  const content = calls.length > 0 && text === "" ? null : text;
  const message = { role: "assistant" as const, content, refusal: null };
  return calls.length > 0 ? { ...message, tool_calls: [...calls] } : message;
}

function finishOf(finish: FinishReason | null, called: boolean): FinishReason | null {
  return finish === "stop" && called ? "tool_calls" : finish;
}

/** Answers to completions. */
export function completionReply(model: string): Reply<Completion, Completion> {
  const made = (choices: Completion["choices"]): Completion => ({
    ...shared,
    object: "text_completion",
    choices,
  });
  const shared = head("cmpl", model);
  const choiceOf = (delta: Delta, logged: boolean): Completion["choices"][number] => ({
    index: delta.index,
    text: delta.text,
    finish_reason: delta.finish,
    logprobs: logged ? completionLogprobs(delta.logprobs) : null,
  });
  return {
    opening: () => [],
    chunks: (delta) => [made([choiceOf(delta, delta.logprobs.length > 0)])],
    closing: ({ plan, usage, timings }) =>
      plan.includeUsage ? [{ ...made([]), usage, timings }] : [],
    whole: (deltas, { plan, usage, timings }) => ({
      ...made(deltas.map((delta) => choiceOf(delta, plan.logprobs))),
      usage,
      timings,
    }),
  };
}

/** The deltas of each choice as one. */
export function joinedDeltas(n: number, deltas: readonly Delta[]): Delta[] {
  return Array.from({ length: n }, (_, index) => {
    const own = deltas.filter((delta) => delta.index === index);
    return {
      index,
      text: own.map((delta) => delta.text).join(""),
      logprobs: own.flatMap((delta) => delta.logprobs),
      finish: own.at(-1)?.finish ?? null,
    };
  });
}

function chatLogprobs(tokens: readonly LoggedToken[]): ChatLogprobs {
  const content = tokens.map((token) => ({
    ...topLogprob(token),
    top_logprobs: token.top.map(topLogprob),
  }));
  return { content, refusal: null };
}

function topLogprob({ piece, logprob }: Pick<LoggedToken, "piece" | "logprob">): TopLogprob {
  return { token: textOf(piece), logprob, bytes: [...piece] };
}

function completionLogprobs(tokens: readonly LoggedToken[]): CompletionLogprobs {
  return {
    tokens: tokens.map(({ piece }) => textOf(piece)),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(({ top }) =>
      Object.fromEntries(top.map(({ piece, logprob }) => [textOf(piece), logprob])),
    ),
    text_offset: tokens.map(({ offset }) => offset),
  };
}

function textOf(piece: Uint8Array): string {
  return new TextDecoder().decode(piece);
}
