/**
 * Access to an instance's memory from outside. Views are created anew when needed, because growth
 * detaches old ones. The memory may be shared; browsers neither decode nor encode text there, so
 * text is copied first.
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Heap {
  constructor(private readonly memory: WebAssembly.Memory) {}

  get byteLength(): number {
    return this.memory.buffer.byteLength;
  }

  view(): DataView {
    return new DataView(this.memory.buffer);
  }

  bytes(at: number, length: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.memory.buffer as ArrayBuffer, at, length);
  }

  words(at: number, length: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.memory.buffer as ArrayBuffer, at, length);
  }

  ints(at: number, length: number): Int32Array<ArrayBuffer> {
    return new Int32Array(this.memory.buffer as ArrayBuffer, at, length);
  }

  floats(at: number, length: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.memory.buffer as ArrayBuffer, at, length);
  }

  /** Read a C string; "" for a null pointer. */
  text(at: number): string {
    if (at === 0) return "";
    const all = new Uint8Array(this.memory.buffer, at);
    return decoder.decode(all.slice(0, all.indexOf(0)));
  }

  textOf(at: number, length: number): string {
    return decoder.decode(this.bytes(at, length).slice());
  }

  writeText(text: string, at: number, length: number): number {
    const copy = new Uint8Array(length);
    const { written } = encoder.encodeInto(text, copy);
    this.bytes(at, written).set(copy.subarray(0, written));
    return written;
  }
}

/** Memory for the arguments of one call, freed together. */
export class Arguments {
  private readonly blocks: number[] = [];

  constructor(
    private readonly heap: Heap,
    private readonly allocate: (bytes: number) => number,
    private readonly release: (at: number) => void,
  ) {}

  block(bytes: number): number {
    const at = this.allocate(Math.max(bytes, 1));
    if (at === 0) throw new RangeError(`no memory for ${bytes} bytes`);
    this.blocks.push(at);
    return at;
  }

  text(text: string): number {
    const bytes = encoder.encode(text);
    const at = this.block(bytes.length + 1);
    const place = this.heap.bytes(at, bytes.length + 1);
    place.set(bytes);
    place[bytes.length] = 0;
    return at;
  }

  bytes(bytes: Uint8Array): number {
    const at = this.block(bytes.length);
    this.heap.bytes(at, bytes.length).set(bytes);
    return at;
  }

  ints(values: ArrayLike<number>): number {
    const at = this.block(values.length * 4);
    this.heap.ints(at, values.length).set(values);
    return at;
  }

  floats(values: ArrayLike<number>): number {
    const at = this.block(values.length * 4);
    this.heap.floats(at, values.length).set(values);
    return at;
  }

  free(): void {
    for (const at of this.blocks) this.release(at);
    this.blocks.length = 0;
  }
}
