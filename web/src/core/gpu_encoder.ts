import type { Kernel } from "./gpu_kernels.js";

/** A command of the core to the device; handles name buffers, offsets and sizes are in bytes. */
export type Command =
  | {
      kind: "launch";
      kernel: Kernel;
      buffers: readonly number[];
      words: Uint32Array;
      groups: readonly [number, number, number];
    }
  | { kind: "copy"; from: number; fromOffset: number; to: number; toOffset: number; bytes: number }
  | { kind: "write"; to: number; toOffset: number; data: Uint8Array<ArrayBuffer> }
  | { kind: "read"; from: number; fromOffset: number; bytes: number }
  | { kind: "free"; buffer: number };

const COPY_SRC = 4; // value of GPUBufferUsage.COPY_SRC
const COPY_DST = 8;
const UNIFORM = 64;
// bytes between uniform blocks: the minUniformBufferOffsetAlignment that every device supports
const SLOT = 256;
const SLOTS = 1024;
const UNIFORM_WORDS = SLOT / 4;

/**
 * Encodes commands into as few submissions as their order allows: one for a step.
 *
 * A write takes effect in the queue at once, so earlier commands that use its buffer are submitted
 * before it.
 */
export class Encoder {
  private encoder: GPUCommandEncoder | undefined;
  private pass: GPUComputePassEncoder | undefined;
  private inPass: Kernel | undefined;
  private readonly used = new Set<number>();
  private readonly uniforms: GPUBuffer;
  private readonly numbers = new Uint32Array(SLOTS * UNIFORM_WORDS);
  private slot = 0;
  private scratch: GPUBuffer | undefined;

  constructor(
    private readonly device: GPUDevice,
    private readonly bufferOf: (handle: number) => GPUBuffer,
  ) {
    this.uniforms = device.createBuffer({ size: SLOTS * SLOT, usage: UNIFORM | COPY_DST });
  }

  launch(command: Extract<Command, { kind: "launch" }>): void {
    const { kernel, buffers, words } = command;
    if (kernel.pipeline === undefined) throw new Error(`kernel ${kernel.name} is not built`);
    if (words.length > UNIFORM_WORDS) throw new Error(`${kernel.name} takes too many numbers`);
    if (this.slot === SLOTS) this.submit();
    const slot = this.slot++;
    this.numbers.set(words, slot * UNIFORM_WORDS);
    this.pass ??= this.open().beginComputePass();
    if (this.inPass !== kernel) this.pass.setPipeline(kernel.pipeline);
    this.inPass = kernel;
    const group = kernel.group(buffers, this.bufferOf, this.uniforms, SLOT);
    this.pass.setBindGroup(0, group, [slot * SLOT]);
    this.pass.dispatchWorkgroups(...command.groups);
    for (const handle of buffers) this.used.add(handle);
  }

  copy(command: Extract<Command, { kind: "copy" }>): void {
    const { from, fromOffset, to, toOffset, bytes } = command;
    const encoder = this.outsidePass();
    this.used.add(from).add(to);
    if (from !== to) {
      encoder.copyBufferToBuffer(this.bufferOf(from), fromOffset, this.bufferOf(to), toOffset, bytes);
      return;
    }
    const scratch = this.scratchOf(bytes); // WebGPU copies only between two different buffers
    encoder.copyBufferToBuffer(this.bufferOf(from), fromOffset, scratch, 0, bytes);
    encoder.copyBufferToBuffer(scratch, 0, this.bufferOf(to), toOffset, bytes);
  }

  write(command: Extract<Command, { kind: "write" }>): void {
    if (this.used.has(command.to)) this.submit();
    this.device.queue.writeBuffer(this.bufferOf(command.to), command.toOffset, command.data);
  }

  /** Record a copy of bytes into a buffer that can be mapped. */
  read(command: Extract<Command, { kind: "read" }>, to: GPUBuffer, toOffset: number): void {
    const from = this.bufferOf(command.from);
    this.outsidePass().copyBufferToBuffer(from, command.fromOffset, to, toOffset, command.bytes);
    this.used.add(command.from);
  }

  submit(): void {
    this.outsidePass();
    if (this.slot > 0) {
      const words = this.slot * UNIFORM_WORDS;
      this.device.queue.writeBuffer(this.uniforms, 0, this.numbers, 0, words);
    }
    if (this.encoder !== undefined) this.device.queue.submit([this.encoder.finish()]);
    this.encoder = undefined;
    this.slot = 0;
    this.used.clear();
  }

  destroy(): void {
    this.uniforms.destroy();
    this.scratch?.destroy();
  }

  private open(): GPUCommandEncoder {
    this.encoder ??= this.device.createCommandEncoder();
    return this.encoder;
  }

  private outsidePass(): GPUCommandEncoder {
    this.pass?.end();
    this.pass = undefined;
    this.inPass = undefined;
    return this.open();
  }

  private scratchOf(bytes: number): GPUBuffer {
    if (this.scratch === undefined || this.scratch.size < bytes) {
      if (this.scratch !== undefined) {
        this.submit(); // submit the commands that use the old buffer
        this.scratch.destroy();
      }
      this.scratch = this.device.createBuffer({ size: bytes, usage: COPY_SRC | COPY_DST });
    }
    return this.scratch;
  }
}
