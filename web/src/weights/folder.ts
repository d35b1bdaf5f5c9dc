import { DamagedFileError } from "../errors.js";
import { type FileRecord, MANIFEST, type Manifest } from "./manifest.js";

/** A compiled folder, wherever it lies. All that it gives has been checked against its manifest. */
export interface ModelFolder {
  /** Where it came from: an address, or a name. */
  readonly source: string;
  readonly manifest: Manifest;
  /** Whether the browser keeps it for the next visit. */
  readonly kept: boolean;
  /** Whether the manifest lists a file. */
  has(name: string): boolean;
  /** @throws DamagedFileError if it is not what the manifest says. */
  bytes(name: string): Promise<Uint8Array>;
  /** A file in pieces, in order; throws {@link DamagedFileError} at its end at the latest. */
  stream(name: string): AsyncGenerator<Uint8Array, void, undefined>;
}

const READ = new Set([
  "tensor-cache.json",
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
]);

/** The files of a folder that a browser reads: not those of other tokenizer libraries, say. */
export function filesRead({ files, library }: Manifest): Map<string, FileRecord> {
  const entries = Object.entries(files);
  return new Map(
    entries.filter(
      ([name]) => name === library || READ.has(name) || /^params_shard_.*\.bin$/.test(name),
    ),
  );
}

/**
 * The manifest's record of a file.
 *
 * @throws DamagedFileError if there is none.
 */
export function recordOf({ files }: Manifest, name: string): FileRecord {
  const record = Object.hasOwn(files, name) ? files[name] : undefined;
  if (!record) throw new DamagedFileError(name, `${MANIFEST} does not list ${name}`);
  return record;
}

/** All bytes of a stream, whose length is known. */
export async function joined(size: number, pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all = new Uint8Array(size);
  let at = 0;
  for await (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}
