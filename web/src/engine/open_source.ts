import {
  type CachedFolderOptions,
  findManifest,
  openCached,
  skipVariant,
} from "../weights/cached_folder.js";
import type { ModelFolder } from "../weights/folder.js";
import { filesOf, filesOfList, openPicked } from "../weights/picked_folder.js";
import { deviceOf } from "./device.js";
import { missingError, missingFeatures } from "./gpu.js";
import type { ModelSource } from "./options.js";

/**
 * Open the model source that a person or a program names.
 *
 * @returns the folder, and the features that variants before it need and this device lacks.
 * @param adapter the GPU; undefined if there is none.
 * @throws ModelError if a variant runs in no browser, before anything else of it is fetched;
 *     MissingFeatureError if this device runs none of the variants; and all errors of opening a
 *     folder.
 */
export async function openSource(
  source: ModelSource,
  adapter: GPUAdapter | undefined,
  options: CachedFolderOptions,
): Promise<readonly [ModelFolder, readonly string[]]> {
  if (isAddresses(source)) return firstThatRuns(addresses(source), adapter, options);
  const folder = await openFiles(source);
  const missing = missingFeatures(folder.manifest, adapter);
  if (missing.length > 0) throw missingError(missing);
  return [folder, missing];
}

/** Make a source's addresses absolute for a worker, whose own address differs from its page's. */
export function portableSource(source: ModelSource): ModelSource {
  if (isAddresses(source)) return addresses(source);
  return Array.isArray(source) ? filesOfList(source as readonly File[]) : source;
}

type Addresses = string | URL | readonly (string | URL)[];

function isAddresses(source: ModelSource): source is Addresses {
  if (typeof source === "string" || source instanceof URL) return true;
  if (!Array.isArray(source)) return false;
  const first: unknown = source[0];
  return typeof first === "string" || first instanceof URL;
}

function addresses(source: Addresses): string[] {
  const base = (globalThis as { location?: Location }).location?.href;
  const all = typeof source === "string" || source instanceof URL ? [source] : source;
  return all.map((address) => new URL(address, base).href);
}

function openFiles(source: Exclude<ModelSource, Addresses>): Promise<ModelFolder> {
  if (source instanceof Map) return openPicked("files", source as ReadonlyMap<string, Blob>);
  if (Array.isArray(source)) {
    const files = source as readonly File[];
    const [top = "files"] = files[0]?.webkitRelativePath.split("/") ?? [];
    return openPicked(top, filesOfList(files));
  }
  const folder = source as FileSystemDirectoryHandle;
  return filesOf(folder).then((files) => openPicked(folder.name, files));
}

async function firstThatRuns(
  urls: readonly string[],
  adapter: GPUAdapter | undefined,
  options: CachedFolderOptions,
): Promise<readonly [ModelFolder, readonly string[]]> {
  const missing = new Set<string>();
  for (const url of urls) {
    const located = await findManifest(url, options);
    deviceOf(located.manifest, url);
    const here = missingFeatures(located.manifest, adapter);
    if (here.length === 0) return [await openCached(located, options), [...missing]];
    for (const feature of here) missing.add(feature);
    await skipVariant(located, options.store);
  }
  throw missingError([...missing]);
}
