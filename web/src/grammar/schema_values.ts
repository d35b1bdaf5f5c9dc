/** What keywords of a schema may be. */
import { isObject } from "../text/tokenizer.js";

const TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"];

export function isTypes(value: unknown): boolean {
  const named = Array.isArray(value) ? value : [value];
  return named.length > 0 && named.every((one) => TYPES.includes(one as string));
}

export function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Numbers that grammars can count up to: neither huge, nor so small that JSON writes an exponent. */
export function isBound(value: unknown): boolean {
  if (typeof value !== "number" || !Number.isFinite(value)) return false;
  return Math.abs(value) < Number.MAX_SAFE_INTEGER && !String(value).includes("e");
}

/** Constants whose numbers are what the schema says: beyond these, integers are read as others. */
export function isExact(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isExact);
  if (isObject(value)) return Object.values(value).every(isExact);
  return !Number.isInteger(value) || Number.isSafeInteger(value);
}

/** @param types a schema's `type`: a name, or a list of names. */
export function isOfType(value: unknown, types: unknown): boolean {
  return (Array.isArray(types) ? types : [types]).some((type) => {
    if (type === "integer") return Number.isInteger(value);
    if (type === "array") return Array.isArray(value);
    if (type === "object") return isObject(value);
    return type === "null" ? value === null : typeof value === type;
  });
}

/**
 * A property's name so that the library, which puts it into a grammar as it is, writes the name in
 * JSON.
 */
export function escapedName(name: string): string {
  return JSON.stringify(name).slice(1, -1).replace(/["\\]/g, "\\$&");
}
