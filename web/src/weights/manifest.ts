/** `wherry.json`, the manifest of a compiled folder: what there is, and how it is checked. */
import { DamagedFileError, ModelError } from "../errors.js";
import { isObject, type JsonObject } from "../json_object.js";
import { sha256 } from "./sha256.js";

export const MANIFEST = "wherry.json";
const SCHEMA = 2;

/** One file of the folder. */
export interface FileRecord {
  /** Bytes. */
  readonly size: number;
  /** SHA-256, in hexadecimal. */
  readonly sha256: string;
}

/** What a browser reads of the manifest. */
export interface Manifest {
  readonly name: string;
  /** Hash of all inputs of the compilation. */
  readonly key: string;
  readonly quantization: string;
  readonly target: {
    /** "webgpu" or "wasm". */
    readonly name: string;
    /** What the GPU needs beyond the least of its API: "shader-f16". */
    readonly device_features?: readonly string[];
    /** Limits beyond the defaults of the specification: "maxBufferSize". */
    readonly device_limits?: Readonly<Record<string, number>>;
  };
  /** Bytes. */
  readonly memory: {
    readonly weights?: number;
    readonly largest_weight?: number;
    readonly kv_per_token?: number;
    /** Layers that keep keys and values; a number. */
    readonly kv_layers?: number;
    readonly workspace?: number;
  };
  /** Tokens and requests. */
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
 * Read a manifest.
 *
 * @throws ModelError if it is none, or of another version.
 * @throws DamagedFileError if it is not what was written.
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
    throw new DamagedFileError(MANIFEST, `${MANIFEST} has changed: its digest is another`);
  }
  return value as unknown as Manifest; // the digest says that our compiler wrote it
}

function parsed(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // said below
  }
  throw new ModelError(
    `This is no compiled model: its ${MANIFEST} is no JSON object. ` +
      "Compile one: wherry compile MODEL --target webgpu -o DIR",
  );
}

/**
 * What the manifest's digest is of: its fields but that one, on one line. The numbers stay as they
 * are written, which a JSON parser would change ("1e-05").
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
