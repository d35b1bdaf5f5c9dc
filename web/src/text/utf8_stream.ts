const REPLACEMENT = "\uFFFD";

/**
 * Decodes UTF-8 as it comes, never a half character.
 *
 * Damaged bytes become U+FFFD: one for each maximal part of a character, as the Encoding Standard
 * has it and as `TextDecoder` does, or one for each byte, as decoders with byte fallback do.
 */
export class Utf8Stream {
  #bytes: number[] = []; // of a character that is not whole
  #needed = 0; // continuation bytes that it still lacks
  #low = 0x80; // what the next one may be: https://encoding.spec.whatwg.org/#utf-8-decoder
  #high = 0xbf;
  readonly #eachByte: boolean;

  constructor({ eachByte }: { eachByte: boolean }) {
    this.#eachByte = eachByte;
  }

  /** The characters that these bytes complete. */
  push(bytes: Uint8Array): string {
    let text = "";
    for (const byte of bytes) text += this.#next(byte);
    return text;
  }

  /** What is left at the end. */
  flush(): string {
    return this.#bytes.length > 0 ? this.#damaged() : "";
  }

  #next(byte: number): string {
    if (this.#needed === 0) return this.#first(byte);
    if (byte < this.#low || byte > this.#high) return this.#damaged() + this.#first(byte);
    this.#low = 0x80;
    this.#high = 0xbf;
    this.#bytes.push(byte);
    this.#needed -= 1;
    return this.#needed === 0 ? this.#whole() : "";
  }

  #first(byte: number): string {
    if (byte < 0x80) return String.fromCharCode(byte);
    if (byte < 0xc2 || byte > 0xf4) return REPLACEMENT;
    this.#needed = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    this.#low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
    this.#high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
    this.#bytes = [byte];
    return "";
  }

  #whole(): string {
    const [lead = 0, ...rest] = this.#bytes;
    this.#bytes = [];
    const bits = lead & (0xff >> (rest.length + 2));
    return String.fromCodePoint(rest.reduce((code, byte) => (code << 6) | (byte & 0x3f), bits));
  }

  #damaged(): string {
    const count = this.#eachByte ? this.#bytes.length : 1;
    this.#bytes = [];
    this.#needed = 0;
    this.#low = 0x80;
    this.#high = 0xbf;
    return REPLACEMENT.repeat(count);
  }
}
