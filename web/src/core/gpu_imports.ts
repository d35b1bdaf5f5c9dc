import type { Command } from "./gpu_encoder.js";
import type { Heap } from "./memory.js";

/**
 * The functions of a GPU device that engine/backends/webgpu/imports.h declares; none of them waits.
 */
export interface GpuCalls {
  /** Allocate a buffer and return its handle; 0: the device allows none of this size. */
  allocate(bytes: number): number;
  /** Return the maximum bytes that a kernel can bind. */
  largest(): number;
  record(command: Exclude<Command, { kind: "launch" }>): void;
  /** Return bytes that were read back; undefined: they have not arrived yet. */
  result(from: number, offset: number, bytes: number): Uint8Array | undefined;
  /**
   * Define a kernel and return its handle. `written` tells for each buffer whether the kernel
   * writes it.
   */
  define(name: string, wgsl: string, written: readonly boolean[]): number;
  launch(
    kernel: number,
    buffers: readonly number[],
    words: Uint32Array,
    groups: readonly [number, number, number],
  ): void;
}

/**
 * The imports of an instance for a device; handles are converted from WebAssembly's signed numbers.
 */
export function gpuImports(gpu: GpuCalls, heap: () => Heap): WebAssembly.ModuleImports {
  return { ...bufferImports(gpu, heap), ...kernelImports(gpu, heap) };
}

/** The imports of an instance without a device: allocation fails, which the core reports. */
export function withoutGpu(): WebAssembly.ModuleImports {
  const names = ["allocate", "free", "largest_buffer", "copy", "write", "start", "read"];
  return Object.fromEntries([...names, "kernel", "launch"].map((name) => [name, () => 0]));
}

function bufferImports(gpu: GpuCalls, heap: () => Heap): WebAssembly.ModuleImports {
  return {
    allocate: (bytes: number) => gpu.allocate(bytes >>> 0),
    free: (buffer: number) => gpu.record({ kind: "free", buffer }),
    largest_buffer: () => gpu.largest(),
    copy: (from: number, fromAt: number, to: number, toAt: number, bytes: number) => {
      const places = { fromOffset: fromAt >>> 0, toOffset: toAt >>> 0, bytes: bytes >>> 0 };
      gpu.record({ kind: "copy", from, to, ...places });
    },
    write: (at: number, to: number, toAt: number, bytes: number) => {
      const data = heap().bytes(at, bytes >>> 0).slice();
      gpu.record({ kind: "write", to, toOffset: toAt >>> 0, data });
    },
    start: (from: number, fromAt: number, bytes: number) =>
      gpu.record({ kind: "read", from, fromOffset: fromAt >>> 0, bytes: bytes >>> 0 }),
    read: (from: number, fromAt: number, at: number, bytes: number) => {
      const result = gpu.result(from, fromAt >>> 0, bytes >>> 0);
      if (result === undefined) return 0;
      heap().bytes(at, result.length).set(result);
      return 1;
    },
  };
}

function kernelImports(gpu: GpuCalls, heap: () => Heap): WebAssembly.ModuleImports {
  return {
    kernel: (
      name: number,
      nameBytes: number,
      wgsl: number,
      wgslBytes: number,
      written: number,
      n: number,
    ) => {
      const writes = Array.from(heap().bytes(written, n), (flag) => flag !== 0);
      return gpu.define(heap().textOf(name, nameBytes), heap().textOf(wgsl, wgslBytes), writes);
    },
    launch: (
      kernel: number,
      buffers: number,
      nBuffers: number,
      words: number,
      nWords: number,
      ...groups: [number, number, number]
    ) => {
      const bound = Array.from(heap().words(buffers, nBuffers));
      gpu.launch(kernel, bound, heap().words(words, nWords).slice(), groups);
    },
  };
}
