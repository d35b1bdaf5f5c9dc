import { MissingFeatureError } from "../errors.js";
import { platform } from "../platform.js";
import type { Manifest } from "../weights/manifest.js";

const RAISED = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxStorageBuffersPerShaderStage",
] as const;

/** Request the browser's GPU adapter, on which the choice of a model variant depends. */
export async function requestAdapter(): Promise<GPUAdapter | undefined> {
  const adapter = await platform.navigator?.gpu?.requestAdapter({
    powerPreference: "high-performance",
  });
  return adapter ?? undefined;
}

/** List the features that a model needs and this GPU lacks; [] if the model runs. */
export function missingFeatures(manifest: Manifest, adapter: GPUAdapter | undefined): string[] {
  if (manifest.target.name !== "webgpu") return [];
  if (!adapter) return ["webgpu"];
  const required = manifest.target.device_features ?? [];
  const missing = required.filter((feature) => !adapter.features.has(feature));
  const limits = Object.entries(manifest.target.device_limits ?? {});
  const tooLow = limits.filter(([name, value]) => value > (limitOf(adapter, name) ?? 0));
  return [...missing, ...tooLow.map(([name]) => name)];
}

function limitOf({ limits }: GPUAdapter, name: string): number | undefined {
  return (limits as unknown as Readonly<Record<string, number | undefined>>)[name];
}

/** Say why this device has none of some features, as the beginning of a sentence. */
export function lacking(features: readonly string[]): string {
  if (!features.includes("webgpu")) return `This GPU lacks ${features.join(", ")}`;
  if (platform.isSecureContext === false)
    return "This page came by http from another machine, and browsers give a GPU to https alone";
  return platform.navigator?.gpu
    ? "The browser gives this page no GPU: its hardware acceleration may be off"
    : "This browser has no WebGPU";
}

/** Create the error that names all features which no variant of a model can do without. */
export function missingError(features: readonly string[]): MissingFeatureError {
  // 16-bit floats are a compile option, not a requirement of models, so the message suggests
  // float32.
  const how = features.every((name) => name === "shader-f16") ? "webgpu -q q4f32_1" : "wasm";
  return new MissingFeatureError(
    features,
    `${lacking(features)}. The model was compiled for ${features.join(", ")}. ` +
      `Compile a variant that runs without: wherry compile MODEL --target ${how}`,
  );
}

/**
 * Request a device with all features that the model needs, and the largest limits that the GPU
 * grants.
 */
export function requestDevice(adapter: GPUAdapter, manifest: Manifest): Promise<GPUDevice> {
  const limits = Object.fromEntries(RAISED.map((name) => [name, adapter.limits[name]]));
  const features = (manifest.target.device_features ?? []) as GPUFeatureName[];
  return adapter.requestDevice({ requiredFeatures: features, requiredLimits: limits });
}
