import { CoreError, reasonOf } from "./errors.js";

/** A kernel of the library; the device's driver builds its pipeline in the background. */
export class Kernel {
  readonly layout: GPUBindGroupLayout;
  pipeline: GPUComputePipeline | undefined;
  /** Resolves when `pipeline` is ready; rejects with a CoreError. */
  readonly built: Promise<void>;
  private readonly groups = new Map<string, GPUBindGroup>();

  /**
   * @param name name of the kernel's entry point
   * @param wgsl source text of the kernel
   * @param written for each buffer that the kernel binds, whether it writes the buffer
   */
  constructor(
    private readonly device: GPUDevice,
    readonly name: string,
    wgsl: string,
    written: readonly boolean[],
  ) {
    const COMPUTE = 4; // value of GPUShaderStage.COMPUTE
    const entries: GPUBindGroupLayoutEntry[] = written.map((writes, binding) => ({
      binding,
      visibility: COMPUTE,
      buffer: { type: writes ? "storage" : "read-only-storage" },
    }));
    entries.push({
      binding: written.length,
      visibility: COMPUTE,
      buffer: { type: "uniform", hasDynamicOffset: true },
    });
    this.layout = device.createBindGroupLayout({ entries });
    const layout = device.createPipelineLayout({ bindGroupLayouts: [this.layout] });
    const module = device.createShaderModule({ code: wgsl, label: name });
    this.built = device
      .createComputePipelineAsync({ layout, compute: { module, entryPoint: name }, label: name })
      .then(
        (pipeline) => {
          this.pipeline = pipeline;
        },
        (thrown: unknown) => {
          throw new CoreError("internal", `kernel ${name} does not compile: ${reasonOf(thrown)}`);
        },
      );
    this.built.catch(() => undefined); // the pipeline's user gets the error
  }

  /** The bind group of these buffers; cached, because steps repeat the same buffers. */
  group(
    handles: readonly number[],
    bufferOf: (handle: number) => GPUBuffer,
    uniforms: GPUBuffer,
    uniformBytes: number,
  ): GPUBindGroup {
    const key = handles.join();
    const known = this.groups.get(key);
    if (known !== undefined) return known;
    const MOST_KEPT = 512;
    if (this.groups.size >= MOST_KEPT) this.groups.clear();
    const entries: GPUBindGroupEntry[] = handles.map((handle, binding) => ({
      binding,
      resource: { buffer: bufferOf(handle) },
    }));
    entries.push({
      binding: handles.length,
      resource: { buffer: uniforms, offset: 0, size: uniformBytes },
    });
    const group = this.device.createBindGroup({ layout: this.layout, entries });
    this.groups.set(key, group);
    return group;
  }
}
