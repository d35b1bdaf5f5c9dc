/**
 * Reads and changes the memory import of a module. CPU modules are linked for shared memory, and
 * their code is correct for unshared memory, too. So one file serves pages with and without shared
 * memory: one bit of the import says which kind the module takes.
 */

const HEADER_BYTES = 8;
const IMPORTS = 2; // id of the import section
const KIND = { func: 0, table: 1, memory: 2, global: 3, tag: 4 };
const HAS_MAXIMUM = 1; // flag of the limits that have a maximum
const SHARED = 2;

/** The declaration of a module's imported memory. */
export interface MemoryImport {
  readonly at: number; // offset in bytes of the limits' flags in the module
  readonly initial: number; // initial size in pages of 64 KiB, the unit of `maximum`, too
  readonly maximum: number | undefined;
}

/** Reads the sections of a module: https://webassembly.github.io/spec/core/binary/modules.html */
class Reader {
  constructor(
    private readonly bytes: Uint8Array,
    public at: number,
  ) {}

  byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw new RangeError("the module ends too early");
    return byte;
  }

  /** Read an unsigned LEB128 number. */
  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.byte();
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  }

  skip(bytes: number): void {
    this.at += bytes;
  }

  limits(): MemoryImport {
    const at = this.at;
    const flags = this.byte();
    const initial = this.number();
    return { at, initial, maximum: flags & HAS_MAXIMUM ? this.number() : undefined };
  }
}

/** Find the memory that a module imports; undefined: it has its own, or the bytes are no module. */
export function memoryImport(bytes: Uint8Array): MemoryImport | undefined {
  try {
    return find(new Reader(bytes, HEADER_BYTES), bytes.length);
  } catch (thrown) {
    // compiling the module reports a better error
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

function find(reader: Reader, end: number): MemoryImport | undefined {
  while (reader.at < end) {
    const id = reader.byte();
    const size = reader.number();
    if (id === IMPORTS) return ofImports(reader);
    reader.skip(size);
  }
  return undefined;
}

function ofImports(reader: Reader): MemoryImport | undefined {
  for (let left = reader.number(); left > 0; left--) {
    reader.skip(reader.number()); // skips the names of module and field
    reader.skip(reader.number());
    const kind = reader.byte();
    if (kind === KIND.memory) return reader.limits();
    if (kind === KIND.func) reader.number();
    else reader.skip(kind === KIND.global ? 2 : 1); // skips the types of one or two bytes
    if (kind === KIND.table) reader.limits();
    if (kind === KIND.tag) reader.number();
  }
  return undefined;
}

/** Return the module with its memory import set to shared or unshared. */
export function withSharing(
  bytes: Uint8Array<ArrayBuffer>,
  { at }: MemoryImport,
  shared: boolean,
): Uint8Array<ArrayBuffer> {
  const flags = bytes[at] ?? 0;
  const required = shared ? flags | SHARED : flags & ~SHARED;
  if (required === flags) return bytes;
  const changed = bytes.slice();
  changed[at] = required;
  return changed;
}

/** Whether workers of this page may share its memory, and this thread may wait for them. */
export function canShareMemory(): boolean {
  // this global is undefined in Node
  const { crossOriginIsolated: isolated } = globalThis as { crossOriginIsolated?: boolean };
  if (isolated === false || typeof SharedArrayBuffer === "undefined") return false;
  try {
    // the value is 0, so this returns at once unless waiting is forbidden
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1);
    return true;
  } catch {
    return false; // a page's main thread must not wait
  }
}

/** Create shared memory for a module; undefined if the system cannot reserve that much. */
export function sharedMemory({ initial, maximum }: MemoryImport): WebAssembly.Memory | undefined {
  try {
    return new WebAssembly.Memory({ initial, maximum: maximum ?? initial, shared: true });
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

/** Create unshared memory for a module, which only this thread uses. */
export function ownMemory({ initial, maximum }: MemoryImport): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial, ...(maximum !== undefined && { maximum }) });
}
