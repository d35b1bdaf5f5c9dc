import { RequestError } from "../errors.js";
import type { ChatRequest } from "./types.js";

// a quarter of the context is reserved for the answer if the request sets no limit
const ANSWER_SHARE = 4;

/** A chat that fits the context, and the number of messages that were removed. */
export interface Truncated {
  readonly request: ChatRequest;
  readonly dropped: number;
}

/**
 * Keep the beginning of a conversation and its newest turns, as many as leave room for the answer,
 * like `wherry chat`. A turn begins with a message of the user.
 *
 * @param length counts the prompt tokens of a chat; undefined: the chat is wrong, which is reported
 *     elsewhere.
 * @throws RequestError: `truncation` has an unknown value
 */
export function truncated(
  { truncation, ...request }: ChatRequest,
  context: number,
  length: (request: ChatRequest) => number | undefined,
): Truncated {
  if (![undefined, null, "auto", "disabled"].includes(truncation)) {
    const words = 'truncation takes "auto" or "disabled"';
    throw new RequestError(words, { param: "truncation" });
  }
  const { messages } = request;
  const listed: unknown = messages; // the caller may have passed any value
  if (truncation !== "auto" || !Array.isArray(listed)) return { request, dropped: 0 };
  const asked = request.max_completion_tokens ?? request.max_tokens;
  const most = context - (asked ?? Math.floor(context / ANSWER_SHARE));
  const first = messages.findIndex((message) => !["system", "developer"].includes(message.role));
  const turns = [...messages.keys()].filter((k) => k > first && messages[k]?.role === "user");
  let sent: ChatRequest = request;
  for (const turn of turns) {
    const tokens = length(sent);
    if (tokens === undefined || tokens <= most) break;
    sent = { ...request, messages: [...messages.slice(0, first), ...messages.slice(turn)] };
  }
  return { request: sent, dropped: messages.length - sent.messages.length };
}
