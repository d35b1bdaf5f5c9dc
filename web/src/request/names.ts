import { RequestError } from "../errors.js";
import { FIELD_NAMES } from "./request_fields.js";

const { sampling, shared, chat, completion, embedding, rerank, classify, others } = FIELD_NAMES;
const KNOWN = {
  chat: [...sampling, ...shared, ...chat],
  completion: [...new Set([...sampling, ...shared, ...completion])],
  embedding,
  rerank,
  classify,
};
/** What a request asks for. */
export type RequestKind = keyof typeof KNOWN;

/** What other servers know: no answer depends on it, or the app says why it is refused. */
const OTHERS = new Set<string>(others);

/** Fields that were sent and that no request of this kind has. */
export function unknownNames(kind: RequestKind, request: object): string[] {
  const known = new Set<string>(KNOWN[kind]);
  return Object.entries(request)
    .filter(([name, value]) => value != null && !OTHERS.has(name) && !known.has(name))
    .map(([name]) => name);
}

/**
 * Refuse unknown fields.
 *
 * @throws RequestError naming the field, and for a misspelt name the nearest known one.
 */
export function checkNames(kind: RequestKind, request: object): void {
  const known: readonly string[] = KNOWN[kind];
  const [unknown] = unknownNames(kind, request);
  if (unknown === undefined) return;
  const nearest = known.toSorted((a, b) => distance(unknown, a) - distance(unknown, b))[0] ?? "";
  const near = distance(unknown, nearest) <= Math.max(1, unknown.length / 4);
  throw new RequestError(
    `There is no field ${unknown} here. ` +
      (near ? `Is it ${nearest}?` : `Fields are ${known.toSorted().join(", ")}.`),
    { param: unknown },
  );
}

/** The edit distance of two names: insertions, deletions and replacements of characters. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, k) => k);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let k = 1; k <= other.length; k += 1) {
      const same = one[i - 1] === other[k - 1] ? 0 : 1;
      next.push(Math.min((row[k - 1] ?? 0) + same, (row[k] ?? 0) + 1, (next[k - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
