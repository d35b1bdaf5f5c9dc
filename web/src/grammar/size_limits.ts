/**
 * What is refused unread. The library has no budget, and the worker that steps waits for it: 3000
 * properties took it more than ten seconds, schemas 80 deep and brackets 200 deep the whole library.
 * Apps, which count its steps, take more (engine/app/grammar/fields.cc).
 */
const LONGEST_SCHEMA = 32 << 10; // characters, as JSON
const LONGEST_GRAMMAR = 64 << 10;
const DEEPEST = 64; // brackets in brackets

/** Why a schema is too large to be compiled; undefined: it is not. */
export function largeSchema(schema: unknown): string | undefined {
  const text = JSON.stringify(schema ?? null);
  return large(text, LONGEST_SCHEMA, " as JSON");
}

/** Why a grammar is too large to be compiled; undefined: it is not. */
export function largeGrammar(grammar: string): string | undefined {
  return large(grammar, LONGEST_GRAMMAR, "");
}

function large(text: string, longest: number, how: string): string | undefined {
  if (text.length > longest) {
    return `has ${text.length} characters${how}; accepted are ${longest}`;
  }
  const depth = deepest(text);
  return depth > DEEPEST ? `has brackets ${depth} deep; accepted are ${DEEPEST}` : undefined;
}

/** Brackets in brackets, but those in texts. */
function deepest(text: string): number {
  let depth = 0;
  let most = 0;
  for (const [sign] of text.replaceAll(/"(?:[^"\\]|\\.)*"/gs, "").matchAll(/[()[\]{}]/g)) {
    depth += "([{".includes(sign) ? 1 : -1;
    depth = Math.max(depth, 0);
    most = Math.max(most, depth);
  }
  return most;
}
