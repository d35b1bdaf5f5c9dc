/** A chat's messages as a template takes them, with earlier calls and their results. */
import type { ChatMessageParam, FunctionTool, ToolCall } from "../request/types.js";
import type { TemplateMessage } from "../text/chat_template.js";
import { isObject } from "../text/tokenizer.js";
import { CLOSING, opening, parametersOf, toldOf } from "./written_calls.js";

/** A message whose content is a text already. */
export type PlainMessage = ChatMessageParam & { readonly content: string };

/** What a template is told: its messages, and its variable `tools`. */
export interface Told {
  readonly messages: TemplateMessage[];
  readonly tools: readonly unknown[] | null;
}

/**
 * What a template is told of a chat with tools.
 *
 * @param native whether it knows of tools; else they, calls and results are texts.
 */
export function conversation(
  messages: readonly PlainMessage[],
  tools: readonly FunctionTool[],
  native: boolean,
): Told {
  if (native) {
    const described = tools.map((tool) => ({
      type: "function",
      function: { ...tool.function, parameters: parametersOf(tool) },
    }));
    return { messages: messages.map(nativeMessage), tools: tools.length > 0 ? described : null };
  }
  const plain = asTexts(messages);
  return { messages: tools.length > 0 ? withPreamble(plain, toldOf(tools)) : plain, tools: null };
}

/** Templates want arguments as an object. */
function nativeMessage(message: PlainMessage): TemplateMessage {
  if (message.role !== "assistant" || !message.tool_calls) return { ...message };
  const calls = message.tool_calls.map(({ id, function: { name, arguments: text } }) => ({
    id,
    type: "function",
    function: { name, arguments: objectOf(text) },
  }));
  return { ...message, tool_calls: calls };
}

function objectOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text || "{}");
    return isObject(value) ? value : text;
  } catch {
    return text; // the model wrote it, and sees what it wrote
  }
}

/** Calls as they are written, results as one message of the user. */
function asTexts(messages: readonly PlainMessage[]): TemplateMessage[] {
  const names = new Map(
    messages.flatMap((message) =>
      message.role === "assistant"
        ? (message.tool_calls ?? []).map((call) => [call.id, call.function.name] as const)
        : [],
    ),
  );
  const made: TemplateMessage[] = [];
  let results = false; // whether the last of them holds results
  for (const message of messages) {
    if (message.role === "tool") {
      const text = `Result of ${names.get(message.tool_call_id ?? "") ?? "unknown"}:\n${message.content}`;
      const before = results ? `${made.pop()?.content ?? ""}\n\n` : "";
      made.push({ role: "user", content: before + text });
      results = true;
      continue;
    }
    results = false;
    if (message.role === "assistant" && message.tool_calls) {
      const calls = message.tool_calls.map(written).join("\n");
      made.push({ role: "assistant", content: `${message.content}\n${calls}`.trim() });
    } else made.push({ ...message });
  }
  return made;
}

function written({ function: { name, arguments: text } }: ToolCall): string {
  return opening(name) + (text || "{}") + CLOSING;
}

function withPreamble(messages: readonly TemplateMessage[], text: string): TemplateMessage[] {
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: text }, ...messages];
  return [{ ...first, content: `${first.content}\n\n${text}`.trim() }, ...rest];
}
