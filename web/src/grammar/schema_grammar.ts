import { prepared } from "./schema_audit.js";
import { xgrammar } from "./xgrammar.js";

/**
 * The grammar of what a schema allows, as text: on one line with a space after ":" and ",", because
 * small models would go on with blanks for ever.
 *
 * @param schema one that is enforced, see checkSchema.
 */
export async function schemaGrammar(schema: unknown): Promise<string> {
  const made = prepared(schema);
  const read = await xgrammar.Grammar.fromJSONSchema(
    JSON.stringify(made.schema),
    false, // any whitespace
    -1,
    undefined,
    false, // strict: it would forbid what a schema says nothing of
  );
  let text = read.toString();
  read.dispose();
  for (const [constant, expression] of made.expressions) {
    text = text.replaceAll(`\\"${constant}\\"`, `" ${expression} "`);
  }
  return text;
}
