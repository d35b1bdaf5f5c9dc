/**
 * The bytes of single tokens, for the two families of decoders that work token by token: byte-level
 * BPE (GPT-2's table of printable characters for bytes), and SentencePiece with byte fallback
 * (`<0xE4>` for a byte, U+2581 for a space). Other decoders need the neighbours of a token.
 */
import type { Decoder, TokenizerJson } from "./tokenizer_json.js";

/** Bytes of a token; the bytes of a text are those of its tokens, joined. */
export interface TokenBytes {
  /** Token's name to bytes. */
  of(name: string): Uint8Array;
  /** How many spaces a whole text loses at its beginning. */
  readonly strip: number;
  /** Whether damaged UTF-8 becomes a U+FFFD for each byte. */
  readonly eachByte: boolean;
}

const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;
const encoder = new TextEncoder();

/** The rule of a tokenizer; undefined if its decoder does not work token by token. */
export function tokenBytesOf({ decoder }: TokenizerJson): TokenBytes | undefined {
  if (!decoder) return undefined;
  const steps = decoder.type === "Sequence" ? [...(decoder.decoders ?? [])] : [decoder];
  if (steps.length === 1 && steps[0]?.type === "ByteLevel") {
    return { of: byteLevel, strip: 0, eachByte: false };
  }
  const last = steps.at(-1);
  const strip = last?.type === "Strip" ? leadingStrip(last) : 0;
  if (last?.type === "Strip") steps.pop();
  const kinds = steps.map((step) => step.type).join(" ");
  const pattern = steps[0]?.pattern?.String;
  if (strip === undefined || kinds !== "Replace ByteFallback Fuse" || !pattern) return undefined;
  return { of: byteFallback(pattern, steps[0]?.content ?? ""), strip, eachByte: true };
}

/** Spaces that a Strip step takes from the beginning; undefined if it does anything else. */
function leadingStrip({ content, start, stop }: Decoder): number | undefined {
  return content === " " && stop === 0 ? start : undefined;
}

function byteFallback(pattern: string, content: string): (name: string) => Uint8Array {
  return (name) => {
    const byte = BYTE.exec(name)?.[1];
    if (byte !== undefined) return Uint8Array.of(parseInt(byte, 16));
    return encoder.encode(name.replaceAll(pattern, content));
  };
}

function byteLevel(name: string): Uint8Array {
  const bytes: number[] = [];
  for (const char of name) {
    const byte = byteOfChar().get(char);
    // An added token that is not written in the table's characters.
    if (byte === undefined) return encoder.encode(name);
    bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

let table: ReadonlyMap<string, number> | undefined;

/** GPT-2's table: printable Latin-1 characters are themselves, the rest follow from U+0100. */
function byteOfChar(): ReadonlyMap<string, number> {
  if (table) return table;
  const made = new Map<string, number>();
  let others = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    const printable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    made.set(String.fromCharCode(printable ? byte : 0x100 + others), byte);
    if (!printable) others += 1;
  }
  return (table = made);
}
