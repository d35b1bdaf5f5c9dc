import { ModelError } from "../errors.js";
import type { Manifest } from "../weights/manifest.js";

/**
 * The device on which a compiled model runs.
 *
 * @param source address of the model, for the error message.
 * @throws ModelError if no browser runs the model's target, or this engine does not.
 */
export function deviceOf({ target: { name } }: Manifest, source: string): "webgpu" | "wasm" {
  if (name === "webgpu" || name === "wasm") return name;
  const why =
    name === "webgpu:web-llm"
      ? "was compiled for @mlc-ai/web-llm, which loads it. For this engine"
      : `was compiled for ${name}, which no browser runs. For browsers`;
  throw new ModelError(`${source} ${why}: wherry compile MODEL --target webgpu -o DIR`);
}
