import { CoreError } from "./errors.js";
import type { Gpu } from "./gpu.js";
import type { Instance } from "./instance.js";

/** A stored tensor that the library takes, from wherry_loader_tensors. */
interface Stored {
  shard: string;
  offset: number; // offset in the shard, in bytes
  nbytes: number; // bytes of the tensor as stored
  bf16: boolean; // whether the values are bfloat16, the upper halves of float32
}

export interface WeightsSource {
  stream(name: string): AsyncIterable<Uint8Array>;
}

/** Receives the bytes of one tensor piece by piece, and writes them to their place. */
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
    // all bytes of the tensor have arrived
  }
}

/** Writes into a buffer of the device, bypassing the instance's memory, in words of 4 bytes. */
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
    const aligned = data.length - (data.length % 4);
    this.rest = data.slice(aligned);
    this.upload(data.subarray(0, aligned));
  }

  end(): void {
    if (this.rest.length === 0) return;
    const padded = new Uint8Array(4); // buffers are rounded up to multiples of 4 bytes
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

/** Converts bfloat16 values to float32 and passes them to another sink. */
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

const MOST_PENDING = 64 << 20; // bytes whose packing may be recorded before the device must run it

/**
 * Receives pieces of shards and passes them to a loader's tensors, in the order of shards and
 * offsets.
 */
class Intake {
  /** Bytes recorded for the device since it last ran commands. */
  pending = 0;
  private readonly all: readonly Stored[];
  private readonly total: number;
  private next = 0; // index of the current tensor: the next bytes belong to it, or precede it
  private at = 0; // offset in the shard, in bytes
  private done = 0; // bytes of tensors that have been received
  private sink: Sink | undefined;

  constructor(
    private readonly instance: Instance,
    private readonly loader: number,
    private readonly gpu: Gpu | undefined,
    private readonly onBytes: (done: number, total: number) => void,
  ) {
    const { exports, heap } = instance;
    this.all = JSON.parse(heap.text(exports.wherry_loader_tensors(loader))) as Stored[];
    this.total = this.all.reduce((sum, tensor) => sum + tensor.nbytes, 0);
  }

  /** The shard that contains the next tensor; undefined: all tensors are received. */
  get shard(): string | undefined {
    return this.all[this.next]?.shard;
  }

  /** Pass the next bytes of a shard to the tensors. */
  take(shard: string, piece: Uint8Array): void {
    const end = this.at + piece.length;
    let tensor = this.all[this.next];
    while (tensor?.shard === shard && tensor.offset < end) {
      const stop = tensor.offset + tensor.nbytes;
      this.sink ??= this.sinkOf(tensor);
      this.sink.write(
        piece.subarray(Math.max(tensor.offset - this.at, 0), Math.min(stop, end) - this.at),
      );
      if (stop > end) break;
      this.filled(this.sink, tensor);
      tensor = this.all[this.next];
    }
    this.at = end;
  }

  /**
   * Check at the end of a shard that its tensors are complete. @throws CoreError incompatible: the
   * shard ended inside of a tensor
   */
  end(shard: string): void {
    if (this.shard === shard) {
      const words = `${shard} ended after ${this.at} bytes, inside of a tensor`;
      throw new CoreError("incompatible", words);
    }
    this.at = 0;
  }

  private filled(sink: Sink, { nbytes }: Stored): void {
    sink.end();
    this.sink = undefined;
    this.instance.check(this.instance.exports.wherry_loader_filled(this.loader, this.next++));
    this.done += nbytes;
    this.pending += nbytes;
    this.onBytes(this.done, this.total);
  }

  private sinkOf({ bf16 }: Stored): Sink {
    const { instance, loader, next, gpu } = this;
    const place = instance.out((_, out) =>
      instance.exports.wherry_loader_place(loader, next, out),
    );
    const sink = gpu === undefined ? new HeapSink(instance, place) : new GpuSink(gpu, place);
    return bf16 ? new WideningSink(sink) : sink;
  }
}

/**
 * Pass a model's tensors to a loader, shard after shard, and let it pack them.
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
  const intake = new Intake(instance, loader, gpu, onBytes);
  for (let shard = intake.shard; shard !== undefined; shard = intake.shard) {
    for await (const piece of source.stream(shard)) {
      if (signal?.aborted) throw new CoreError("aborted", "loading was aborted");
      intake.take(shard, piece);
      if (gpu === undefined || intake.pending <= MOST_PENDING) continue;
      await gpu.settle();
      intake.pending = 0;
    }
    intake.end(shard);
  }
  await gpu?.settle();
}
