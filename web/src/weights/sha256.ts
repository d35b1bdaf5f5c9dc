import { createSHA256 } from "hash-wasm";

import { platform } from "../platform.js";

/** A SHA-256 computation over bytes that come in pieces. */
export interface Hasher {
  update(piece: Uint8Array): void;
  /** Return the SHA-256 in hexadecimal. */
  digest(): string;
}

/** Create a hasher; the browser's own function needs all bytes at once, too many for a model. */
export async function hasher(): Promise<Hasher> {
  const hash = await createSHA256();
  return {
    update: (piece) => void hash.update(piece),
    digest: () => hash.digest("hex"),
  };
}

/** Compute the SHA-256 of bytes, in hexadecimal; the browser does so on another thread. */
export async function sha256(bytes: Uint8Array): Promise<string> {
  // Pages on http:// have no crypto.subtle, except on localhost.
  const { subtle } = platform.crypto;
  if (!subtle) {
    const hash = await hasher();
    hash.update(bytes);
    return hash.digest();
  }
  const digest = await subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
