import type { ModelInfo } from "../src/index.js";
import { lacking } from "../src/engine/gpu.js";

const SLOWER = "The model runs on the CPU, which is slower.";

/** Say why a model runs slower than it could, and what to do; undefined if it does not. */
export function deviceNote({ device, missing }: ModelInfo): string | undefined {
  if (!isSecureContext)
    return (
      "This page came by http from another machine. Browsers give such pages no GPU, one thread of " +
      "the CPU, and no place to keep the model. Open it by https, or on its own machine by " +
      "http://localhost."
    );
  if (device === "webgpu" || missing.length === 0) return undefined;
  if (missing.includes("webgpu"))
    return "gpu" in navigator
      ? `${lacking(missing)}. ${SLOWER} Switch it on in the browser's settings.`
      : `${lacking(missing)}. ${SLOWER} Recent versions of Chrome, Edge and Safari have it.`;
  const remedy = missing.every((name) => name === "shader-f16")
    ? " A site can have a variant for this GPU, too: wherry package MODEL -q q4f16_1 -q q4f32_1"
    : "";
  return `${lacking(missing)}. ${SLOWER}${remedy}`;
}
