/**
 * How calls are written: as Hermes and Qwen do, a JSON object between two marks. Models whose
 * templates know that way are told of tools by their templates, all others in words.
 */
import type { FunctionTool } from "../request/types.js";
import type { JsonObject } from "../text/tokenizer.js";

export const BEGIN = "<tool_call>";
export const END = "</tool_call>";
/** Before the arguments, and after them. */
export const opening = (name: string): string =>
  `${BEGIN}\n{"name": ${JSON.stringify(name)}, "arguments": `;
export const CLOSING = `}\n${END}`;

/** Signs of other ways to write calls between the same marks. */
const OTHERS = ["<function=", "<arg_key>"];

/** Whether a template tells the model of tools in this way. */
export function knowsTools(template: string): boolean {
  return template.includes(BEGIN) && !OTHERS.some((sign) => template.includes(sign));
}

/** The schema of a tool's arguments. */
export function parametersOf({ function: { parameters } }: FunctionTool): JsonObject {
  return { type: "object", properties: {}, ...parameters };
}

/** What a model is told whose template knows nothing of tools. */
export function toldOf(tools: readonly FunctionTool[]): string {
  const lines = tools.map((tool) => {
    const { name, description = "" } = tool.function;
    return JSON.stringify({ name, description, parameters: parametersOf(tool) });
  });
  return (
    "You can call functions. Each line here describes one, as JSON:\n" +
    `${lines.join("\n")}\n\n` +
    "To call a function, write this, with what is meant in place of the words in capitals, and " +
    `nothing after it:\n${opening("NAME")}{ARGUMENTS}${CLOSING}\n` +
    "You get the results in the next message. Where no function helps, answer in words."
  );
}
