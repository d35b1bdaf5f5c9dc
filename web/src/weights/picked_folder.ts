/**
 * A compiled folder that the person has picked: it is read from the disk, and stored nowhere else.
 */
import { DamagedFileError, ModelError } from "../errors.js";
import { joined, type ModelFolder, recordOf } from "./folder.js";
import { MANIFEST, type Manifest, parseManifest } from "./manifest.js";
import { hasher } from "./sha256.js";

/** Files by name, from `<input webkitdirectory>`, a dropped folder, or Node's `fs.openAsBlob`. */
export type PickedFiles = ReadonlyMap<string, Blob>;

/**
 * Open a picked folder.
 *
 * @throws ModelError if the folder is no compiled model.
 * @throws DamagedFileError if files are missing or have another size; the message names them all.
 */
export async function openPicked(source: string, files: PickedFiles): Promise<ModelFolder> {
  const file = files.get(MANIFEST);
  if (!file) {
    throw new ModelError(
      `The folder has no ${MANIFEST}: it is no compiled model. ` +
        "Compile one: wherry compile MODEL --target webgpu -o DIR",
    );
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  const manifest = await parseManifest(bytes);
  checkSizes(manifest, files);
  return new PickedFolder(source, manifest, bytes, files);
}

/** List the files of a folder that was picked with `showDirectoryPicker()`. */
export async function filesOf(folder: FileSystemDirectoryHandle): Promise<PickedFiles> {
  const files = new Map<string, Blob>();
  for await (const [name, entry] of folder.entries()) {
    if (entry.kind === "file") files.set(name, await entry.getFile());
  }
  return files;
}

/**
 * List the files of `<input type="file" webkitdirectory>` that lie directly in the picked folder.
 */
export function filesOfList(list: Iterable<File>): PickedFiles {
  const all = [...list];
  const top = all.filter(({ webkitRelativePath: path }) => path.split("/").length <= 2);
  return new Map(top.map((file) => [file.name, file]));
}

function checkSizes(manifest: Manifest, files: PickedFiles): void {
  const problems = Object.entries(manifest.files).flatMap(([name, { size }]) => {
    const actual = files.get(name)?.size;
    if (actual === undefined) return [{ name, text: `${name} is missing` }];
    return actual === size ? [] : [{ name, text: `${name} has ${actual} bytes, not ${size}` }];
  });
  const [first] = problems;
  if (first) {
    throw new DamagedFileError(first.name, problems.map((problem) => problem.text).join("; "));
  }
}

class PickedFolder implements ModelFolder {
  readonly source: string;
  readonly manifest: Manifest;
  readonly kept = false;
  readonly #manifestBytes: Uint8Array;
  readonly #files: PickedFiles;

  constructor(source: string, manifest: Manifest, bytes: Uint8Array, files: PickedFiles) {
    this.source = source;
    this.manifest = manifest;
    this.#manifestBytes = bytes;
    this.#files = files;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.manifest.files, name);
  }

  async bytes(name: string): Promise<Uint8Array> {
    if (name === MANIFEST) return this.#manifestBytes;
    return joined(recordOf(this.manifest, name).size, this.stream(name));
  }

  async *stream(name: string): AsyncGenerator<Uint8Array, void, undefined> {
    const expected = recordOf(this.manifest, name);
    const hash = await hasher();
    const reader = this.#files.get(name)?.stream().getReader();
    for (;;) {
      const part = await reader?.read();
      if (!part || part.done) break;
      hash.update(part.value);
      yield part.value;
    }
    if (hash.digest() !== expected.sha256) {
      throw new DamagedFileError(name, `${name} has changed: its SHA-256 differs`);
    }
  }
}
