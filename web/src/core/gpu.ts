import { CoreError, reasonOf } from "./errors.js";
import { type Command, Encoder } from "./gpu_encoder.js";
import { type GpuCalls, gpuImports } from "./gpu_imports.js";
import { Kernel } from "./gpu_kernels.js";
import type { Heap } from "./memory.js";

const MAP_READ = 1; // value of GPUBufferUsage.MAP_READ, and of GPUMapMode.READ
const COPY_SRC = 4;
const COPY_DST = 8;
const STORAGE = 128;

export type OnPipelines = (done: number, total: number) => void;

/**
 * The GPU device of one instance; implements the imports of engine/backends/webgpu/imports.h.
 *
 * Commands of the instance are recorded. `settle` waits for the pipelines that they need, encodes
 * all of them, and waits for the bytes to be read back.
 */
export class Gpu implements GpuCalls {
  /** Number of kernels launched since the last `beginStep`. */
  launches = 0;
  /** Bytes of all buffers on the device. */
  bytes = 0;
  private readonly encoder: Encoder;
  private readonly buffers = new Map<number, GPUBuffer>();
  private readonly kernels: Kernel[] = [];
  private built = 0;
  private onBuilt: () => void = () => undefined;
  private builtMs = 0;
  private buildStart: number | undefined;
  private nextBuffer = 1;
  private commands: Command[] = [];
  private results = new Map<string, Uint8Array>();
  private staging: GPUBuffer | undefined;
  private checks: Promise<void>[] = [];
  private failure: CoreError | undefined;

  constructor(
    private readonly device: GPUDevice,
    private readonly heap: () => Heap,
    private readonly onPipelines: OnPipelines,
  ) {
    this.encoder = new Encoder(device, (handle) => this.bufferOf(handle));
    void device.lost.then((info) => {
      const words = info.message === "" ? info.reason : info.message;
      this.failure = new CoreError("device_lost", `the GPU was lost: ${words}`);
    });
  }

  imports(): WebAssembly.ModuleImports {
    return gpuImports(this, this.heap);
  }

  /** Milliseconds that were spent only on building pipelines. */
  get buildMs(): number {
    const { buildStart } = this;
    return this.builtMs + (buildStart === undefined ? 0 : performance.now() - buildStart);
  }

  /** Record a command; implements {@link GpuCalls}. */
  record(command: Command): void {
    this.commands.push(command);
  }

  /** Return bytes that were read back; implements {@link GpuCalls}. */
  result(from: number, offset: number, bytes: number): Uint8Array | undefined {
    return this.results.get(keyOf(from, offset, bytes));
  }

  /** Define a kernel and return its handle; implements {@link GpuCalls}. */
  define(name: string, wgsl: string, written: readonly boolean[]): number {
    const kernel = new Kernel(this.device, name, wgsl, written);
    kernel.built.then(
      () => {
        this.built++;
        this.onBuilt();
      },
      () => undefined, // the pipeline's user gets the error
    );
    return this.kernels.push(kernel);
  }

  /** Record the launch of a kernel; implements {@link GpuCalls}. */
  launch(
    handle: number,
    buffers: readonly number[],
    words: Uint32Array,
    groups: readonly [number, number, number],
  ): void {
    const kernel = this.kernels[handle - 1];
    if (kernel === undefined) throw new RangeError(`no kernel ${handle}`);
    this.launches++;
    this.commands.push({ kind: "launch", kernel, buffers, words, groups });
  }

  /**
   * Wait until every pipeline is built, and report the progress.
   *
   * @throws CoreError: device_lost, or internal: a kernel does not compile
   */
  async ready(): Promise<void> {
    this.onBuilt = () => {
      this.onPipelines(this.built, this.kernels.length);
    };
    this.onBuilt();
    await this.guarded(() => this.build(this.kernels));
  }

  /** Begin a step: drop the read-back results of the previous one. */
  beginStep(): void {
    this.launches = 0;
    this.results.clear();
  }

  /** Write bytes into a buffer that no command uses yet; offset and length are multiples of 4. */
  upload(buffer: number, offset: number, data: Uint8Array<ArrayBuffer>): void {
    this.device.queue.writeBuffer(this.bufferOf(buffer), offset, data);
  }

  /**
   * Run the recorded commands, and wait for the bytes to be read back.
   *
   * @throws CoreError: device_lost, out_of_memory, or internal: why a kernel or command was refused
   */
  async settle(): Promise<void> {
    const commands = this.commands;
    this.commands = [];
    this.throwFailure();
    if (commands.length === 0 && this.checks.length === 0) return;
    await this.guarded(async () => {
      const launches = commands.filter((command) => command.kind === "launch");
      await this.build(launches.map(({ kernel }) => kernel));
      const reads = this.carryOut(commands);
      await Promise.all([reads, ...this.checks.splice(0)]);
    });
  }

  destroy(): void {
    this.failure ??= new CoreError("device_lost", "the core was destroyed");
    this.encoder.destroy();
    this.staging?.destroy();
    for (const buffer of this.buffers.values()) buffer.destroy();
    this.buffers.clear();
    this.commands = [];
    this.bytes = 0;
  }

  get failed(): boolean {
    return this.failure !== undefined;
  }

  /** Throw an error if the device is known to be lost, or out of memory. */
  throwFailure(): void {
    if (this.failure !== undefined) throw this.failure;
  }

  /** Run work and store its failure, which is final: the recorded commands are lost. */
  private async guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      await this.noticeLoss(thrown);
      this.failure ??= asCoreError(thrown);
      throw this.failure;
    }
    this.throwFailure();
  }

  /** Wait a moment for the loss of the device, which is reported after its commands fail. */
  private async noticeLoss(thrown: unknown): Promise<void> {
    if (thrown instanceof CoreError) return;
    const moment = new Promise<void>((resolve) => setTimeout(resolve, 100));
    await Promise.race([this.device.lost.then(() => undefined), moment]);
  }

  /** Return the largest size of a binding; implements {@link GpuCalls}. */
  largest(): number {
    const { maxBufferSize, maxStorageBufferBindingSize } = this.device.limits;
    return Math.min(maxBufferSize, maxStorageBufferBindingSize);
  }

  /** Allocate a buffer; implements {@link GpuCalls}. */
  allocate(bytes: number): number {
    if (bytes > this.largest()) return 0;
    this.device.pushErrorScope("out-of-memory");
    const buffer = this.device.createBuffer({ size: bytes, usage: STORAGE | COPY_SRC | COPY_DST });
    this.checks.push(
      this.device.popErrorScope().then((problem) => {
        if (problem === null) return;
        const words = `the GPU has no memory for ${bytes} bytes besides ${this.bytes - bytes}`;
        this.failure ??= new CoreError("out_of_memory", `${words}: ${problem.message}`);
      }),
    );
    const handle = this.nextBuffer++;
    this.buffers.set(handle, buffer);
    this.bytes += bytes;
    return handle;
  }

  private bufferOf(handle: number): GPUBuffer {
    const buffer = this.buffers.get(handle);
    if (buffer === undefined) throw new RangeError(`no buffer ${handle}`);
    return buffer;
  }

  private async build(kernels: readonly Kernel[]): Promise<void> {
    if (kernels.every(({ pipeline }) => pipeline !== undefined)) return;
    this.buildStart = performance.now();
    await Promise.all(kernels.map(({ built }) => built));
    this.builtMs = this.buildMs;
    this.buildStart = undefined;
  }

  /** Encode and submit commands; the promise resolves when the bytes are read back. */
  private carryOut(commands: readonly Command[]): Promise<void> {
    const reads = commands.filter((command) => command.kind === "read");
    const staging = this.stagingFor(reads.reduce((sum, read) => sum + read.bytes, 0));
    const freed: number[] = [];
    let end = 0;
    this.device.pushErrorScope("validation");
    for (const command of commands) {
      switch (command.kind) {
        case "launch":
          this.encoder.launch(command);
          break;
        case "copy":
          this.encoder.copy(command);
          break;
        case "write":
          this.encoder.write(command);
          break;
        case "free":
          freed.push(command.buffer);
          break;
        case "read":
          if (staging !== undefined) this.encoder.read(command, staging, end);
          end += command.bytes;
      }
    }
    this.encoder.submit();
    for (const handle of freed) this.drop(handle);
    this.checks.push(
      this.device.popErrorScope().then((problem) => {
        if (problem !== null) throw new CoreError("internal", `WebGPU: ${problem.message}`);
      }),
    );
    return staging === undefined ? Promise.resolve() : this.bring(staging, end, reads);
  }

  private async bring(
    staging: GPUBuffer,
    bytes: number,
    reads: readonly Extract<Command, { kind: "read" }>[],
  ): Promise<void> {
    await staging.mapAsync(MAP_READ, 0, bytes);
    const mapped = new Uint8Array(staging.getMappedRange(0, bytes));
    let at = 0;
    for (const { from, fromOffset, bytes: length } of reads) {
      this.results.set(keyOf(from, fromOffset, length), mapped.slice(at, at + length));
      at += length;
    }
    staging.unmap();
  }

  private stagingFor(bytes: number): GPUBuffer | undefined {
    if (bytes === 0) return undefined;
    if (this.staging === undefined || this.staging.size < bytes) {
      this.staging?.destroy();
      this.staging = this.device.createBuffer({ size: bytes, usage: MAP_READ | COPY_DST });
    }
    return this.staging;
  }

  private drop(handle: number): void {
    const buffer = this.bufferOf(handle);
    this.bytes -= buffer.size;
    this.buffers.delete(handle);
    buffer.destroy();
  }
}

function keyOf(from: number, offset: number, bytes: number): string {
  return `${from}:${offset}:${bytes}`;
}

function asCoreError(thrown: unknown): CoreError {
  if (thrown instanceof CoreError) return thrown;
  return new CoreError("internal", `WebGPU: ${reasonOf(thrown)}`, { cause: thrown });
}
