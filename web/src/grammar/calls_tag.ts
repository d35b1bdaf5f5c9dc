import type { StructuralTag, TagFormat } from "@mlc-ai/web-xgrammar";

import type { AskedTools } from "../tools/asked_tools.js";
import { BEGIN, CLOSING, opening, parametersOf } from "../tools/written_calls.js";
import type { FunctionTool } from "../request/types.js";
import { checkSchema, unenforcedIn } from "./schema_audit.js";
import { largeSchema } from "./size_limits.js";

const SAYS_MORE = ["additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"];

/**
 * What holds an answer to calls of tools, or to text in which calls are held to their schemas.
 *
 * @param grammarOf a schema's grammar.
 * @throws RequestError if a strict tool's schema cannot be enforced.
 */
export async function callsTag(
  { tools, must, several }: AskedTools,
  grammarOf: (schema: object) => Promise<string>,
): Promise<StructuralTag> {
  const tags: TagFormat[] = await Promise.all(
    tools.map(async (tool) => ({
      type: "tag",
      begin: opening(tool.function.name),
      content: { type: "grammar", grammar: await grammarOf(schemaOf(tool)) },
      end: CLOSING,
    })),
  );
  const one = { stop_after_first: !several };
  if (!must) return { format: { type: "triggered_tags", triggers: [BEGIN], tags, ...one } };
  const listed = {
    type: "tags_with_separator",
    tags,
    separator: "\n",
    at_least_one: true,
  } as const;
  return { format: { ...listed, ...one } };
}

/**
 * What its arguments are held to. A schema that leaves open what else may be in an object gets nothing
 * else: a model that may add what it likes never ends.
 */
function schemaOf(tool: FunctionTool): object {
  const schema = parametersOf(tool);
  if (tool.function.strict) checkSchema(schema, "tools");
  else if (largeSchema(schema) !== undefined || unenforcedIn(schema).length > 0) {
    return { type: "object" };
  }
  if (SAYS_MORE.some((keyword) => keyword in schema)) return schema;
  return { ...schema, additionalProperties: false };
}
