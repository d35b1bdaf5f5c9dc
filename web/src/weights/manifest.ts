/** The manifest of a compiled folder, `wherry.json`: its files, and how they are checked. */
import { DamagedFileError, ModelError } from "../errors.js";
import { isObject, type JsonObject } from "../json_object.js";
import { sha256 } from "./sha256.js";

export const MANIFEST = "wherry.json";
const SCHEMA = 2;

/** The manifest's record of one file. */
export interface FileRecord {
  /** Size of the file in bytes. */
  readonly size: number;
  /** SHA-256 of the file, in hexadecimal. */
  readonly sha256: string;
}

/** The part of the manifest that a browser needs. */
export interface Manifest {
  readonly name: string;
  /** Hash of all inputs of the compilation. */
  readonly key: string;
  readonly quantization: string;
  readonly target: {
    /** Name of the target: "webgpu" or "wasm". */
    readonly name: string;
    /** GPU features that the model needs beyond WebGPU's core: "shader-f16". */
    readonly device_features?: readonly string[];
    /** GPU limits that the model needs beyond WebGPU's defaults: "maxBufferSize". */
    readonly device_limits?: Readonly<Record<string, number>>;
  };
  /** Planned memory in bytes. */
  readonly memory: {
    readonly weights?: number;
    readonly largest_weight?: number;
    readonly kv_per_token?: number;
    /** Number of layers that have a KV cache. */
    readonly kv_layers?: number;
    /** Bytes of a sequence's recurrent state, or of a snapshot of it, if the model has one. */
    readonly slot?: number;
    readonly workspace?: number;
  };
  /** Planned sizes, in tokens and requests. */
  readonly deployment: {
    readonly context?: number;
    readonly max_batch?: number;
    readonly prefill_chunk?: number;
  };
  readonly capabilities: readonly string[];
  /** Name of the compiled library among the files. */
  readonly library: string;
  readonly files: Readonly<Record<string, FileRecord>>;
}

/**
 * Parse a manifest.
 *
 * @throws ModelError if the file is no manifest, or of another version.
 * @throws DamagedFileError if its digest does not match.
 */
export async function parseManifest(bytes: Uint8Array): Promise<Manifest> {
  const text = new TextDecoder().decode(bytes);
  const value = parsed(text);
  if (value["schema"] !== SCHEMA) {
    throw new ModelError(
      `${MANIFEST} has schema ${JSON.stringify(value["schema"])}; this version reads schema ` +
        `${SCHEMA}. Compile the model again with the same version: wherry compile MODEL --target webgpu`,
    );
  }
  const digest = await sha256(new TextEncoder().encode(digested(text)));
  if (value["digest"] !== digest) {
    throw new DamagedFileError(MANIFEST, `${MANIFEST} has changed: its digest differs`);
  }
  return value as unknown as Manifest; // the digest proves that the compiler wrote these fields
}

function parsed(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // the error is thrown below
  }
  throw new ModelError(
    `This is not a compiled model: its ${MANIFEST} is not a JSON object. ` +
      "Compile one: wherry compile MODEL --target webgpu -o DIR",
  );
}

/**
 * The text that the manifest's digest covers: all fields but the digest, on one line. Numbers keep
 * their spelling, which a JSON parser would change ("1e-05").
 */
function digested(text: string): string {
  return text
    .replace(/"(?:[^"\\]|\\.)*"|\s+|[,:]/g, (token) => {
      if (token === "," || token === ":") return `${token} `;
      return token.startsWith('"') ? token : "";
    })
    .replace(/(, )?"digest": "[0-9a-f]{64}"(?=[,}])/, "")
    .replace(/^\{, /, "{");
}
