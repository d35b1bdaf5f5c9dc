import { platform } from "../platform.js";
import type { ByteStore } from "./byte_store.js";
import { quotaExceeded } from "./quota.js";

const ROOT = "wherry";

/** A store over the origin private file system (OPFS). */
export class OpfsStore implements ByteStore {
  readonly shared = true;
  readonly #root: FileSystemDirectoryHandle;

  private constructor(root: FileSystemDirectoryHandle) {
    this.#root = root;
  }

  /** Open the store; undefined if the browser has none, or disables it in this mode. */
  static async open(): Promise<OpfsStore | undefined> {
    const { navigator, FileSystemFileHandle } = platform;
    if (!FileSystemFileHandle || !("createWritable" in FileSystemFileHandle.prototype)) {
      return undefined;
    }
    try {
      const top = await navigator?.storage?.getDirectory();
      const root = await top?.getDirectoryHandle(ROOT, { create: true });
      return root && new OpfsStore(root);
    } catch {
      return undefined; // private windows of some browsers refuse access
    }
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const { folder, last } = await this.#place(name);
    try {
      const file = await (await folder?.getFileHandle(last))?.getFile();
      return file && new Uint8Array(await file.arrayBuffer());
    } catch (error) {
      missing(error);
      return;
    }
  }

  async put(name: string, value: Uint8Array): Promise<void> {
    const { folder, last } = await this.#place(name, { create: true });
    const handle = await folder?.getFileHandle(last, { create: true });
    // the new content replaces the file when the stream is closed
    const writable = await handle?.createWritable();
    try {
      await writable?.write(value as Uint8Array<ArrayBuffer>);
      await writable?.close();
    } catch (error) {
      await writable?.abort().catch(() => undefined);
      await this.#removeEmpty(folder, last);
      throw await quotaExceeded(error, value.byteLength);
    }
  }

  async remove(path: string): Promise<void> {
    const { folder, last } = await this.#place(path);
    await folder?.removeEntry(last, { recursive: true }).catch(missingOrInUse);
  }

  async names(path: string): Promise<string[]> {
    const { folder, last } = await this.#place(path);
    const top = await folder?.getDirectoryHandle(last).catch(missing);
    const paths: string[] = [];
    if (top) await collect(top, path, paths);
    return paths.sort();
  }

  /** Remove a new file that was never written: it has a name and no bytes. */
  async #removeEmpty(folder: FileSystemDirectoryHandle | undefined, last: string): Promise<void> {
    const file = await folder?.getFileHandle(last).then((handle) => handle.getFile(), missing);
    if (file?.size === 0) await folder?.removeEntry(last).catch(missing);
  }

  async #place(
    path: string,
    options: FileSystemGetDirectoryOptions = {},
  ): Promise<{ folder: FileSystemDirectoryHandle | undefined; last: string }> {
    const parts = path.split("/");
    const last = parts.pop() ?? "";
    let folder: FileSystemDirectoryHandle | undefined = this.#root;
    for (const part of parts) {
      folder = await folder?.getDirectoryHandle(part, options).catch(missing);
    }
    return { folder, last };
  }
}

async function collect(
  folder: FileSystemDirectoryHandle,
  path: string,
  paths: string[],
): Promise<void> {
  for await (const [name, entry] of folder.entries()) {
    if (entry.kind === "file") paths.push(`${path}/${name}`);
    else await collect(entry, `${path}/${name}`, paths);
  }
}

/**
 * Return undefined for an error that says the file is missing, or is being written by another page.
 */
function missingOrInUse(error: unknown): undefined {
  const inUse = error instanceof DOMException && error.name === "NoModificationAllowedError";
  if (!inUse) missing(error);
  return undefined;
}

/** Return undefined for an error that says the file is missing; throw other errors. */
function missing(error: unknown): undefined {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotFoundError" || name === "TypeMismatchError") return undefined;
  throw error;
}
