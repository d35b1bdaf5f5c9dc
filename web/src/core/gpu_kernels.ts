import { CoreError, reasonOf } from "./errors.js";

/** A kernel of the library; its pipeline is built by the device's driver, meanwhile we go on. */
export class Kernel {
  readonly layout: GPUBindGroupLayout;
  pipeline: GPUComputePipeline | undefined;
  /** Resolves when `pipeline` is there, rejects with a CoreError. */
  readonly built: Promise<void>;
  private readonly groups = new Map<string, GPUBindGroup>();

  /**
   * @param name of the entry point
   * @param wgsl its text
   * @param written of each buffer that it binds, whether it writes it
   */
  constructor(
    private readonly device: GPUDevice,
    readonly name: string,
    wgsl: string,
    written: readonly boolean[],
  ) {
    const COMPUTE = 4; // GPUShaderStage.COMPUTE
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

  /** The group of these buffers; the same one for the same buffers, step after step. */
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
