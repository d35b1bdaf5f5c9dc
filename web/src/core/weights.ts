import { CoreError } from "./errors.js";
import type { Gpu } from "./gpu.js";
import type { Instance } from "./instance.js";

/** A stored tensor that the library takes, as wherry_loader_tensors has it. */
interface Stored {
  shard: string;
  offset: number; // bytes
  nbytes: number; // as stored
  bf16: boolean; // the upper halves of float32 values
}

export interface WeightsSource {
  stream(name: string): AsyncIterable<Uint8Array>;
}

/** Writes what comes of one tensor to its place, piece by piece. */
interface Sink {
  write(piece: Uint8Array): void;
  end(): void;
}

class HeapSink implements Sink {
  constructor(
    private readonly instance: Instance,
    private at: number,
  ) {}

  write(piece: Uint8Array): void {
    this.instance.heap.bytes(this.at, piece.length).set(piece);
    this.at += piece.length;
  }

  end(): void {
    // all of it is there
  }
}

/** Into a buffer of the device, without a way through the instance's memory; in words of 4 bytes. */
class GpuSink implements Sink {
  private offset = 0;
  private rest = new Uint8Array(0);

  constructor(
    private readonly gpu: Gpu,
    private readonly buffer: number,
  ) {}

  write(piece: Uint8Array): void {
    let data = piece;
    if (this.rest.length > 0) {
      data = new Uint8Array(this.rest.length + piece.length);
      data.set(this.rest);
      data.set(piece, this.rest.length);
    }
    const whole = data.length - (data.length % 4);
    this.rest = data.slice(whole);
    this.upload(data.subarray(0, whole));
  }

  end(): void {
    if (this.rest.length === 0) return;
    const padded = new Uint8Array(4); // buffers are rounded up
    padded.set(this.rest);
    this.rest = new Uint8Array(0);
    this.upload(padded);
  }

  private upload(data: Uint8Array): void {
    if (data.length === 0) return;
    this.gpu.upload(this.buffer, this.offset, data as Uint8Array<ArrayBuffer>);
    this.offset += data.length;
  }
}

/** Halves of float32 values on their way to another sink. */
class WideningSink implements Sink {
  private odd: number | undefined;

  constructor(private readonly to: Sink) {}

  write(piece: Uint8Array): void {
    const bytes = this.odd === undefined ? piece : Uint8Array.of(this.odd, ...piece);
    const count = bytes.length >> 1;
    this.odd = bytes.length % 2 === 1 ? bytes[bytes.length - 1] : undefined;
    const wide = new Uint8Array(count * 4);
    for (let i = 0; i < count; i++) {
      wide[4 * i + 2] = bytes[2 * i] ?? 0;
      wide[4 * i + 3] = bytes[2 * i + 1] ?? 0;
    }
    this.to.write(wide);
  }

  end(): void {
    this.to.end();
  }
}

/**
 * Brings a loader its tensors, shard after shard, and lets it pack them.
 *
 * @throws CoreError incompatible: a shard ends too early; aborted
 */
export async function loadWeights(
  instance: Instance,
  loader: number,
  source: WeightsSource,
  gpu: Gpu | undefined,
  onBytes: (done: number, total: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { exports, heap } = instance;
  const all = JSON.parse(heap.text(exports.wherry_loader_tensors(loader))) as Stored[];
  const total = all.reduce((sum, tensor) => sum + tensor.nbytes, 0);
  const MOST_PENDING = 64 << 20; // bytes whose packing was recorded and not carried out
  let pending = 0;
  let done = 0;

  const sinkOf = (i: number, tensor: Stored): Sink => {
    const place = instance.out((_, out) => exports.wherry_loader_place(loader, i, out));
    const sink = gpu === undefined ? new HeapSink(instance, place) : new GpuSink(gpu, place);
    return tensor.bf16 ? new WideningSink(sink) : sink;
  };

  for (let first = 0; first < all.length; ) {
    const shard = all[first]?.shard ?? "";
    let next = first; // the tensor that what comes belongs to, or precedes
    let at = 0; // of the shard
    let sink: Sink | undefined;
    for await (const piece of source.stream(shard)) {
      if (signal?.aborted) throw new CoreError("aborted", "loading was aborted");
      const end = at + piece.length;
      for (let tensor = all[next]; tensor?.shard === shard && tensor.offset < end; ) {
        const stop = tensor.offset + tensor.nbytes;
        sink ??= sinkOf(next, tensor);
        sink.write(piece.subarray(Math.max(tensor.offset - at, 0), Math.min(stop, end) - at));
        if (stop > end) break;
        sink.end();
        sink = undefined;
        instance.check(exports.wherry_loader_filled(loader, next));
        done += tensor.nbytes;
        pending += tensor.nbytes;
        onBytes(done, total);
        tensor = all[++next];
      }
      at = end;
      if (gpu !== undefined && pending > MOST_PENDING) {
        await gpu.settle();
        pending = 0;
      }
    }
    if (all[next]?.shard === shard) {
      throw new CoreError("incompatible", `${shard} ended after ${at} bytes, inside of a tensor`);
    }
    first = next;
  }
  await gpu?.settle();
}
