/**
 * What of JSON Schema is enforced; what is not is refused by name, never ignored. The keywords are
 * those of engine/app/grammar/schema_audit.cc, which has a later version of the library; both are
 * held to tests/app/schema_cases.json.
 *
 * Of $ref, const, enum, anyOf and type the library reads the first that is there, and leaves the
 * others: so do the rules here.
 */
import { RequestError } from "../errors.js";
import { isObject } from "../text/tokenizer.js";
import { numberRange } from "./number_ranges.js";
import { largeSchema } from "./size_limits.js";
import {
  escapedName,
  isBound,
  isCount,
  isExact,
  isOfType,
  isTexts,
  isTypes,
} from "./schema_values.js";

/**
 * Enforced, with values that are no schemas, and what these have to be. Texts of a length or a pattern
 * are not among them: the library's rules for these allow control characters, which JSON does not.
 */
const PLAIN = new Map<string, (value: unknown) => boolean>([
  ["type", isTypes],
  ["required", isTexts],
  ["enum", (value) => Array.isArray(value) && isExact(value)],
  ["const", isExact],
  ["$ref", (value) => typeof value === "string"],
  ["minimum", isBound],
  ["maximum", isBound],
  ["minItems", isCount],
  ["maxItems", isCount],
]);
/** Enforced, with a schema, a list of schemas, or schemas by name. */
const NESTED = new Set(["items", "additionalProperties"]);
const LISTS = new Set(["anyOf", "prefixItems"]);
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
/** Of these the first that is there is all that counts. */
const ALONE = ["$ref", "const", "enum", "anyOf"];
/** What tells the library of a type, where none is named. */
const TELLING = ["properties", "additionalProperties", "items", "prefixItems"];
/** What does not, and the type that makes it count: what is valid then is valid without it. */
const UNTOLD = [
  ["required", "object"],
  ["minItems", "array"],
  ["maxItems", "array"],
  ["minimum", "number"],
  ["maximum", "number"],
] as const;

type Json = Record<string, unknown>;

/** A schema as the library reads it, but for what is not in its power. */
export interface Prepared {
  schema: unknown;
  /** Constants that stand for expressions of a grammar. */
  expressions: ReadonlyMap<string, string>;
}

/** @throws RequestError naming all keywords that would not be enforced, or that it is too large. */
export function checkSchema(schema: unknown, param: string): void {
  const large = largeSchema(schema);
  if (large !== undefined) throw new RequestError(`The schema ${large}`, { param });
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
  const audit = new Audit(schema);
  audit.whole();
  return audit.problems();
}

/** The schema that is compiled: one that is enforced. */
export function prepared(schema: unknown): Prepared {
  const audit = new Audit(schema);
  return { schema: audit.whole(), expressions: audit.expressions };
}

class Audit {
  readonly expressions = new Map<string, string>();
  readonly #text: string; // as JSON: no member is undefined
  readonly #found = new Set<string>();
  readonly #schemas = new Set<string>(); // pointers to all that the library would find
  readonly #references = new Map<string, string>(); // pointers, by the places where they are

  constructor(schema: unknown) {
    this.#text = JSON.stringify(schema ?? null);
  }

  problems(): string[] {
    const lost = [...this.#references].filter(([, pointer]) => !this.#schemas.has(pointer));
    return [...this.#found, ...lost.map(([place]) => place)];
  }

  whole(): unknown {
    return this.#schema(JSON.parse(this.#text), "", "#");
  }

  #schema(given: unknown, where: string, pointer: string): unknown {
    if (pointer) this.#schemas.add(pointer);
    if (!isObject(given)) {
      if (typeof given !== "boolean") this.#found.add(where || "#");
      return given;
    }
    const alone = ALONE.find((name) => name in given);
    const constants = alone === "const" || alone === "enum";
    const made: [string, unknown][] = [];
    for (const [name, value] of Object.entries(given)) {
      const place = placed(where, name);
      if (NOTES.has(name) || (constants && name === "type")) continue;
      if (alone !== undefined && name !== alone && constrains(name)) this.#found.add(place);
      else made.push([name, this.#keyword(name, value, place, step(pointer, name))]);
    }
    const rewritten = Object.fromEntries(made);
    if (alone === undefined) return this.#typed(rewritten, where);
    if (constants && "type" in given) this.#keepOfType(rewritten, given["type"], where);
    const among = rewritten[alone];
    if (alone !== "const" && Array.isArray(among) && among.length === 0) {
      this.#found.add(placed(where, alone));
    }
    return rewritten;
  }

  /** Where the library takes no `false`. */
  #possible(given: unknown, where: string, pointer: string): unknown {
    if (given === false) this.#found.add(where);
    return this.#schema(given, where, pointer);
  }

  #keyword(name: string, value: unknown, place: string, pointer: string): unknown {
    if (NESTED.has(name)) return this.#schema(value, place, pointer);
    if (LISTS.has(name) && Array.isArray(value)) {
      return value.map((one, index) => this.#possible(one, `${place}[${index}]`, ""));
    }
    if (NAMED.has(name) && isObject(value)) {
      const entries = Object.entries(value).map(([key, one]): [string, unknown] => {
        const named = name === "properties" ? escapedName(key) : key;
        const found = named === key ? step(pointer, key) : "";
        return [named, this.#possible(one, `${place}.${key}`, found)];
      });
      return Object.fromEntries(entries);
    }
    if (PLAIN.get(name)?.(value) !== true) this.#found.add(place);
    else if (name === "$ref") this.#references.set(place, value as string);
    else if (name === "required") return (value as string[]).map(escapedName);
    return value;
  }

  /** Of constants those that are of a type beside them. */
  #keepOfType(made: Json, type: unknown, where: string): void {
    if (!isTypes(type)) this.#found.add(placed(where, "type"));
    const constants = "const" in made ? [made["const"]] : made["enum"];
    if (!Array.isArray(constants)) return;
    const kept = constants.filter((one) => isOfType(one, type));
    if (kept.length === 0) this.#found.add(placed(where, "type"));
    delete made["const"];
    made["enum"] = kept;
  }

  /** A schema whose type says what it reads. */
  #typed(made: Json, where: string): unknown {
    if (!("type" in made) && !TELLING.some((name) => name in made)) {
      const told = UNTOLD.find(([name]) => name in made);
      if (told) made["type"] = told[1];
    }
    this.#requireNamed(made, where);
    this.#close(made, where);
    return this.#withRange(made, where);
  }

  /** The library requires only what is among the properties. */
  #requireNamed(made: Json, where: string): void {
    const { required, properties = {}, additionalProperties: others = {} } = made;
    if (!isTexts(required) || !isObject(properties)) return;
    const missing = (required as string[]).filter((name) => !Object.hasOwn(properties, name));
    if (missing.length === 0) return;
    if (others === false) this.#found.add(placed(where, "required"));
    const added = missing.map((name): [string, unknown] => [name, others]);
    made["properties"] = Object.fromEntries([...Object.entries(properties), ...added]);
  }

  /**
   * The library allows the names of properties among those that may be added, with any value of
   * these. What nothing is said of is not added; what has a schema of its own cannot be.
   */
  #close(made: Json, where: string): void {
    const { properties, additionalProperties: others } = made;
    if (!isObject(properties) || Object.keys(properties).length === 0) return;
    const open = others === undefined || others === true || isEmpty(others);
    if (open) made["additionalProperties"] = false;
    else if (others !== false) {
      const text = JSON.stringify(others);
      const same = Object.values(properties).every((one) => JSON.stringify(one) === text);
      if (!same) this.#found.add(placed(where, "additionalProperties"));
    }
  }

  /** With a constant in place of numbers that have bounds. */
  #withRange(made: Json, where: string): Json {
    const { minimum, maximum, ...rest } = made;
    if (minimum === undefined && maximum === undefined) return made;
    const types = Array.isArray(rest["type"]) ? (rest["type"] as unknown[]) : [rest["type"]];
    const whole = !types.includes("number");
    if (whole && !types.includes("integer")) return rest;
    if ([minimum, maximum].some((one) => one !== undefined && !isBound(one))) return made;
    const [low, high] = [minimum, maximum] as (number | undefined)[];
    const expression = whole
      ? numberRange(true, low && Math.ceil(low), high && Math.floor(high))
      : numberRange(false, low, high);
    if (!expression) this.#found.add(placed(where, "minimum"));
    const range = { const: this.#constantFor(expression ?? "") };
    const others = types.filter((type) => type !== "number" && type !== "integer");
    const { $defs, definitions, ...own } = rest;
    const defined = Object.entries({ $defs, definitions }).filter(([, value]) => value);
    const shape = others.length > 0 ? { anyOf: [range, { ...own, type: others }] } : range;
    return { ...shape, ...Object.fromEntries(defined) };
  }

  #constantFor(expression: string): string {
    for (let number = this.expressions.size; ; number += 1) {
      const constant = `expression ${number}`;
      if (this.#text.includes(constant) || this.expressions.has(constant)) continue;
      this.expressions.set(constant, expression);
      return constant;
    }
  }
}

function placed(where: string, name: string): string {
  return where ? `${where}.${name}` : name;
}

/** The pointer to a member, as the library follows it: "" if it would not come there. */
function step(pointer: string, name: string): string {
  return pointer && name && !/[~/%]/.test(name) ? `${pointer}/${name}` : "";
}

function constrains(name: string): boolean {
  return PLAIN.has(name) || NESTED.has(name) || LISTS.has(name) || name === "properties";
}

function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}
