/** What of JSON Schema is enforced; what is not is refused by name, never ignored. */
import { RequestError } from "../errors.js";
import { isObject } from "../text/tokenizer.js";

/**
 * Enforced, with values that are no schemas. Texts of a length or a pattern are not among them: the
 * library's rules for these allow control characters, which JSON does not.
 */
const PLAIN = new Set([
  "type",
  "required",
  "enum",
  "const",
  "$ref",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
]);
/** Enforced, with a schema, a list of schemas, or schemas by name. */
const NESTED = new Set(["items", "additionalProperties", "anyOf", "prefixItems"]);
const NAMED = new Set(["properties", "$defs", "definitions"]);
/** Without effect on what is valid. */
const NOTES = new Set([
  "$schema",
  "$id",
  "$comment",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
]);

/** @throws RequestError naming all keywords that would not be enforced. */
export function checkSchema(schema: unknown, param: string): void {
  const problems = unenforcedIn(schema);
  if (problems.length > 0) {
    throw new RequestError(
      `The schema has keywords that are not enforced here: ${problems.join(", ")}`,
      { param },
    );
  }
}

/** The keywords of a schema that would not be enforced, and where they are. */
export function unenforcedIn(schema: unknown): string[] {
  return [...new Set(unenforced(schema, ""))];
}

function* unenforced(schema: unknown, where: string): Generator<string> {
  if (Array.isArray(schema)) {
    for (const [index, one] of schema.entries()) yield* unenforced(one, `${where}[${index}]`);
    return;
  }
  if (!isObject(schema)) return;
  for (const [name, value] of Object.entries(schema)) {
    const place = where ? `${where}.${name}` : name;
    if (NESTED.has(name)) yield* unenforced(value, place);
    else if (NAMED.has(name) && isObject(value)) {
      for (const [key, one] of Object.entries(value)) yield* unenforced(one, `${place}.${key}`);
    } else if (!PLAIN.has(name) && !NOTES.has(name)) yield place;
  }
}
