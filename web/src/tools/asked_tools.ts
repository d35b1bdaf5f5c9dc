import { RequestError } from "../errors.js";
import type { ChatRequest, FunctionTool, ResponseFormat } from "../request/types.js";

/** The tools that an answer may call. */
export interface AskedTools {
  readonly tools: readonly FunctionTool[];
  /** Whether it has to call one. */
  readonly must: boolean;
  /** Whether it may call several. */
  readonly several: boolean;
  /** Whether it has to call one that is named: then OpenAI's answers end with "stop". */
  readonly named: boolean;
}

/**
 * What a request says of tools; undefined: there are none for it.
 *
 * @throws RequestError if it names a tool that is not there, or what cannot be enforced.
 */
export function askedTools(request: ChatRequest): AskedTools | undefined {
  const { tools = [], tool_choice: choice = "auto" } = request;
  const names = (tools ?? []).map((tool) => nameOf(tool));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw refused("tools", `tools has ${JSON.stringify(twice)} twice`);
  const must = choice === "required" || (typeof choice === "object" && choice !== null);
  if (must && names.length === 0) {
    throw refused("tool_choice", "tool_choice asks for a call, and there are no tools");
  }
  if (choice === "none" || names.length === 0) return undefined;
  checkFormat(request.response_format);
  const chosen = chosenOf(tools ?? [], choice);
  const one = typeof choice === "object" && choice !== null;
  return {
    tools: chosen,
    must,
    several: request.parallel_tool_calls !== false && !one,
    named: one,
  };
}

function nameOf(tool: FunctionTool): string {
  const { type, function: asked } = tool as { type?: unknown; function?: { name?: unknown } };
  const name = asked?.name;
  if (type === "function" && typeof name === "string" && /^[\w.-]{1,64}$/.test(name)) return name;
  throw refused(
    "tools",
    'tools has to hold {"type": "function", "function": {"name": ..., "parameters": ...}}; a name ' +
      "has up to 64 letters, digits, _, . and -",
  );
}

function chosenOf(
  tools: readonly FunctionTool[],
  choice: ChatRequest["tool_choice"],
): readonly FunctionTool[] {
  if (typeof choice === "string" || choice == null) {
    if (choice == null || choice === "auto" || choice === "required") return tools;
    const found = JSON.stringify(choice);
    throw refused(
      "tool_choice",
      `tool_choice is ${found}; it takes none, auto, required or a tool`,
    );
  }
  const wanted = (choice as { function?: { name?: string } }).function?.name;
  const found = tools.filter((tool) => tool.function.name === wanted);
  if (found.length > 0) return found;
  const names = tools.map((tool) => tool.function.name).join(", ");
  throw refused("tool_choice", `tool_choice names ${String(wanted)}; tools has ${names}`);
}

function checkFormat(format: ResponseFormat | undefined): void {
  if ((format?.type ?? "text") === "text") return;
  throw refused(
    "response_format",
    "response_format and tools together are not supported in browsers. Leave out one of them, or " +
      'say tool_choice: "none".',
  );
}

function refused(param: string, message: string): RequestError {
  return new RequestError(message, { param });
}
