/**
 * Memory of a module that imports it. Modules of CPUs are linked for shared memory; all else in them
 * is right for memory that is not. So one file serves pages that may share and those that may not:
 * one bit of it says which memory it takes.
 */

const HEADER_BYTES = 8;
const IMPORTS = 2; // the section's id
const KIND = { func: 0, table: 1, memory: 2, global: 3, tag: 4 };
const HAS_MAXIMUM = 1; // flags of limits
const SHARED = 2;

/** What a module says of the memory that it imports. */
export interface MemoryImport {
  readonly at: number; // of the limits' flags in the module, bytes
  readonly initial: number; // pages of 64 KiB, as `maximum`
  readonly maximum: number | undefined;
}

/** Reads what a module begins with: https://webassembly.github.io/spec/core/binary/modules.html */
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

  /** An unsigned LEB128. */
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

/** The memory that a module imports; undefined: it has its own, or is no module. */
export function memoryImport(bytes: Uint8Array): MemoryImport | undefined {
  try {
    return find(new Reader(bytes, HEADER_BYTES), bytes.length);
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined; // compiling it gives a better error
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
    reader.skip(reader.number()); // names of module and field
    reader.skip(reader.number());
    const kind = reader.byte();
    if (kind === KIND.memory) return reader.limits();
    if (kind === KIND.func) reader.number();
    else reader.skip(kind === KIND.global ? 2 : 1); // types of one byte
    if (kind === KIND.table) reader.limits();
    if (kind === KIND.tag) reader.number();
  }
  return undefined;
}

/** The module for memory that is shared, or is not. */
export function withSharing(
  bytes: Uint8Array<ArrayBuffer>,
  { at }: MemoryImport,
  shared: boolean,
): Uint8Array<ArrayBuffer> {
  const flags = bytes[at] ?? 0;
  const wanted = shared ? flags | SHARED : flags & ~SHARED;
  if (wanted === flags) return bytes;
  const changed = bytes.slice();
  changed[at] = wanted;
  return changed;
}

/** Whether workers of this page may have its memory, and this thread may wait for them. */
export function canShareMemory(): boolean {
  const { crossOriginIsolated: isolated } = globalThis as { crossOriginIsolated?: boolean }; // not in Node
  if (isolated === false || typeof SharedArrayBuffer === "undefined") return false;
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1); // holds 0: nothing to wait for
    return true;
  } catch {
    return false; // a page's own thread
  }
}

/** Memory for a module: shared, or undefined if the system does not reserve as much. */
export function sharedMemory({ initial, maximum }: MemoryImport): WebAssembly.Memory | undefined {
  try {
    return new WebAssembly.Memory({ initial, maximum: maximum ?? initial, shared: true });
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

/** Memory for a module, of this thread alone. */
export function ownMemory({ initial, maximum }: MemoryImport): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial, ...(maximum !== undefined && { maximum }) });
}
