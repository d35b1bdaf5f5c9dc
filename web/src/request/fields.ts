import { RequestError } from "../errors.js";
import type { ChatRequest, CompletionRequest } from "./types.js";

/** Fields whose neglect would change the answer; each with the values that ask for nothing. */
const MEANINGFUL: Readonly<Record<string, readonly string[]>> = {
  functions: ["[]"],
  function_call: ['"none"', '"auto"'],
  modalities: ['["text"]'],
  audio: [],
  web_search_options: [],
  best_of: ["1"],
  echo: ["false"],
  suffix: ['""'],
  prompt_logprobs: ["false"],
  guided_json: [],
  guided_regex: [],
  guided_choice: [],
  guided_grammar: [],
  structured_outputs: [],
};

/**
 * Refuse requests of the wrong shape, and fields that are not known here and whose neglect would
 * change the answer.
 *
 * @throws RequestError naming them all.
 */
export function checkFields(kind: "chat", request: ChatRequest): void;
export function checkFields(kind: "completion", request: CompletionRequest): void;
export function checkFields(kind: string, request: ChatRequest | CompletionRequest): void {
  const given = request as unknown as Readonly<Record<string, unknown>>;
  const refused = Object.entries(MEANINGFUL).filter(
    ([name, harmless]) => given[name] != null && !harmless.includes(JSON.stringify(given[name])),
  );
  const [first] = refused;
  if (first) {
    throw new RequestError(
      "Not supported in browsers, and leaving it out would change the answer: " +
        refused.map(([name]) => name).join(", "),
      { param: first[0] },
    );
  }
  if (kind === "chat") checkMessages(given["messages"]);
  else checkPrompt(given["prompt"]);
}

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new RequestError("messages has to be a list of at least one message", {
      param: "messages",
    });
  }
  for (const [index, message] of (messages as unknown[]).entries()) {
    const { role, content, tool_calls } = (message ?? {}) as Readonly<Record<string, unknown>>;
    const told = typeof content === "string" || Array.isArray(content);
    if (typeof role === "string" && (told || (content == null && Array.isArray(tool_calls))))
      continue;
    throw new RequestError(`messages.${index} has to have a role and a content, both texts`, {
      param: `messages.${index}`,
    });
  }
}

function checkPrompt(prompt: unknown): void {
  if (typeof prompt === "string" || Array.isArray(prompt)) return;
  throw new RequestError("prompt has to be a text or a list of token ids", { param: "prompt" });
}
