import { DamagedFileError } from "../errors.js";
import { type FileRecord, MANIFEST, type Manifest } from "./manifest.js";

/**
 * A compiled folder from any source. All bytes that it returns are checked against its manifest.
 */
export interface ModelFolder {
  /** The address or name of the folder. */
  readonly source: string;
  readonly manifest: Manifest;
  /** Whether the browser stores the folder for the next visit. */
  readonly kept: boolean;
  /** Whether the manifest lists a file. */
  has(name: string): boolean;
  /** Read a whole file. @throws DamagedFileError if its content differs from the manifest. */
  bytes(name: string): Promise<Uint8Array>;
  /** Read a file in pieces, in order; throws {@link DamagedFileError} at its end at the latest. */
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
  "chat_template.json",
  "chat_template.tool_use.jinja",
]);

/** Select the files of a folder that a browser needs, without those for other runtimes. */
export function filesRead({ files, library }: Manifest): Map<string, FileRecord> {
  const entries = Object.entries(files);
  return new Map(
    entries.filter(
      ([name]) => name === library || READ.has(name) || /^params_shard_.*\.bin$/.test(name),
    ),
  );
}

/**
 * Return the manifest's record of a file.
 *
 * @throws DamagedFileError if the manifest does not list it.
 */
export function recordOf({ files }: Manifest, name: string): FileRecord {
  const record = Object.hasOwn(files, name) ? files[name] : undefined;
  if (!record) throw new DamagedFileError(name, `${MANIFEST} does not list ${name}`);
  return record;
}

/** Concatenate all pieces of a stream whose total length is known. */
export async function joined(size: number, pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all = new Uint8Array(size);
  let at = 0;
  for await (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}
