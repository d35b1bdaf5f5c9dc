import { createSHA256 } from "hash-wasm";

import { platform } from "../platform.js";

/** SHA-256 of bytes that come in pieces. */
export interface Hasher {
  update(piece: Uint8Array): void;
  /** In hexadecimal. */
  digest(): string;
}

/** A hasher; what browsers bring along wants all bytes at once, which are too many of a model's. */
export async function hasher(): Promise<Hasher> {
  const made = await createSHA256();
  return {
    update: (piece) => void made.update(piece),
    digest: () => made.digest("hex"),
  };
}

/** SHA-256 of bytes that are all there, in hexadecimal; computed by the browser, off this thread. */
export async function sha256(bytes: Uint8Array): Promise<string> {
  // Pages of http:// have no crypto.subtle, but for localhost.
  const { subtle } = platform.crypto;
  if (!subtle) {
    const made = await hasher();
    made.update(bytes);
    return made.digest();
  }
  const digest = await subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
