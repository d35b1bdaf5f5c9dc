/** Records of the models in a store: for each model its address and its manifest. */
import type { ByteStore } from "./byte_store.js";
import { filesRead } from "./folder.js";
import { BLOBS, KeptFile } from "./kept_file.js";
import { type Manifest, parseManifest } from "./manifest.js";
import { sha256 } from "./sha256.js";

const RECORDS = "models";

/** A model that is stored, completely or in part. */
export interface KeptModel {
  /** Address of the model's folder. */
  readonly url: string;
  readonly name: string;
  /** Number of stored bytes; shared files count for each model. */
  readonly bytes: number;
  /** Number of bytes in all files that the browser needs of the model. */
  readonly total: number;
  /** Time of the last load, in milliseconds since 1970. */
  readonly used: number;
}

interface ModelRecord {
  readonly url: string;
  readonly used: number; // 0 if the model was never loaded and only its manifest is stored
  readonly manifest: string;
}

/** Record that a model is used. */
export async function keepRecord(
  store: ByteStore,
  url: string,
  manifest: Uint8Array,
): Promise<void> {
  const record: ModelRecord = {
    url,
    used: Date.now(),
    manifest: new TextDecoder().decode(manifest),
  };
  await store.put(await recordName(url), new TextEncoder().encode(JSON.stringify(record)));
}

/** Store a manifest, whether or not other files of the model are stored. */
export async function keepManifest(
  store: ByteStore,
  url: string,
  bytes: Uint8Array,
): Promise<void> {
  const name = await recordName(url);
  const existing = await read(store, name);
  const manifest = new TextDecoder().decode(bytes);
  if (existing?.manifest === manifest) return;
  const record: ModelRecord = { url, used: existing?.used ?? 0, manifest };
  await store.put(name, new TextEncoder().encode(JSON.stringify(record)));
}

/** Read the stored manifest of a model; undefined if there is none. */
export async function keptManifest(store: ByteStore, url: string): Promise<Uint8Array | undefined> {
  const record = await read(store, await recordName(url));
  return record && new TextEncoder().encode(record.manifest);
}

/** List all stored models, the most recently used first. */
export async function keptModels(store: ByteStore): Promise<KeptModel[]> {
  const models: KeptModel[] = [];
  for (const { record, manifest } of await used(store)) {
    const files = [...filesRead(manifest).values()];
    const kept = await Promise.all(files.map((file) => new KeptFile(store, file).bytesKept()));
    models.push({
      url: record.url,
      name: manifest.name,
      bytes: kept.reduce((sum, bytes) => sum + bytes, 0),
      total: files.reduce((sum, file) => sum + file.size, 0),
      used: record.used,
    });
  }
  return models.sort((a, b) => b.used - a.used);
}

/** Remove a model, and all files that no other model uses. */
export async function removeKept(store: ByteStore, url: string): Promise<void> {
  await store.remove(await recordName(url));
  await pruneKept(store);
}

/** Remove all files that no model uses, such as those of a model's older versions. */
export async function pruneKept(store: ByteStore): Promise<void> {
  const named = new Set<string>();
  for (const { manifest } of await used(store)) {
    for (const { sha256: digest } of filesRead(manifest).values()) named.add(digest);
  }
  const kept = new Set((await store.names(BLOBS)).map((name) => name.split("/")[1] ?? ""));
  for (const digest of kept) {
    if (!named.has(digest)) await store.remove(`${BLOBS}/${digest}`);
  }
}

interface Kept {
  readonly record: ModelRecord;
  readonly manifest: Manifest;
}

/** List the models of which more than the manifest is stored. */
async function used(store: ByteStore): Promise<Kept[]> {
  return (await all(store)).filter(({ record }) => record.used > 0);
}

async function all(store: ByteStore): Promise<Kept[]> {
  const kept: Kept[] = [];
  for (const name of await store.names(RECORDS)) {
    const record = await read(store, name);
    const manifest = record && (await manifestOf(record));
    if (manifest) kept.push({ record, manifest });
    // the record is damaged or of another version, so nothing can read it
    else await store.remove(name);
  }
  return kept;
}

async function manifestOf(record: ModelRecord): Promise<Manifest | undefined> {
  try {
    return await parseManifest(new TextEncoder().encode(record.manifest));
  } catch {
    return undefined;
  }
}

async function read(store: ByteStore, name: string): Promise<ModelRecord | undefined> {
  const bytes = await store.get(name);
  if (!bytes) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as ModelRecord;
  } catch {
    return undefined;
  }
}

async function recordName(url: string): Promise<string> {
  const digest = await sha256(new TextEncoder().encode(url));
  return `${RECORDS}/${digest.slice(0, 32)}.json`;
}
