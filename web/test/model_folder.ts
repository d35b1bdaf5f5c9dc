/** Creates small compiled folders, and a server for them that can simulate failures. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname } from "node:path";

import { App } from "../src/app/app.js";
import { openPicked } from "../src/weights/picked_folder.js";
import { Random } from "./random.js";

const cases = new URL("../tests/web/text_cases.json", `file://${process.cwd()}/`);
const TOKENIZER = (
  JSON.parse(readFileSync(cases, "utf8")) as {
    tokenizers: Record<string, { tokenizer: object }>;
  }
).tokenizers["byte_level"]?.tokenizer;
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};
const TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>";

export type Files = Map<string, Uint8Array<ArrayBuffer>>;

/**
 * Create the files of a folder; `shards` has the lengths of its weights, whose bytes depend on
 * `seed`.
 */
export function folder({
  name = "small",
  target = {},
  memory = {},
  shards = [9_500_000, 1000],
  seed = 1,
  tokenizer = TOKENIZER,
  template = TEMPLATE,
} = {}): Files {
  const random = new Random(seed);
  const files: Files = new Map([
    ["model.wasm", random.bytes(2000)],
    ["tensor-cache.json", text({ records: [] })],
    ["tokenizer.json", text(tokenizer)],
    [
      "tokenizer_config.json",
      text({ bos_token: "<s>", eos_token: "</s>", chat_template: template }),
    ],
    ["generation_config.json", text({ temperature: 0.5 })],
    ...shards.map((size, k) => [`params_shard_${k}.bin`, block(random, size)] as const),
  ]);
  files.set("wherry.json", manifest(files, { name, target, memory }));
  return files;
}

/** Open the app of a folder's model, without a core below it. */
export async function appOf(files: Files): Promise<App> {
  const blobs = new Map([...files].map(([file, bytes]) => [file, new Blob([bytes])]));
  const nothing = { add: () => undefined, abort: () => undefined };
  const model = { name: "small", context: 512, vocabSize: 1024 };
  return App.open(await openPicked("files", blobs), model, nothing);
}

function block(random: Random, size: number): Uint8Array<ArrayBuffer> {
  // 997 bytes, so that the repeated pattern never aligns with the borders of chunks
  const seed = random.bytes(997);
  return Uint8Array.from({ length: size }, (_, at) => (seed[at % 997] ?? 0) ^ (at >> 12));
}

function manifest(
  files: Files,
  { name, target, memory }: { name: string; target: object; memory: object },
): Uint8Array<ArrayBuffer> {
  const records = [...files].map(([file, bytes]) => [
    file,
    { size: bytes.length, sha256: sha(bytes) },
  ]);
  const values = {
    architecture: { config: { rms_norm_eps: 1.25, name: 'a "quoted", {odd}: one\\' } },
    capabilities: [],
    deployment: { context: 512, max_batch: 8 },
    files: Object.fromEntries(records.sort()) as object,
    interface: "x",
    key: "k",
    library: "model.wasm",
    memory,
    name,
    quantization: "q4f16_1",
    schema: 2,
    target: { kind: "llvm", name: "wasm", ...target },
    tvm: "0",
    wherry: "0",
  };
  const digest = sha(Buffer.from(python(values)));
  const { architecture, capabilities, deployment, ...rest } = values;
  const all = { architecture, capabilities, deployment, digest, ...rest };
  return text(all, 2);
}

/** Write JSON on one line as Python does. */
function python(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(
    ([key, one]) => `${JSON.stringify(key)}: ${python(one)}`,
  );
  return `{${fields.join(", ")}}`;
}

function text(value: unknown, indent?: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(JSON.stringify(value, null, indent)));
}

function sha(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** A failure that the server simulates instead of a correct response, `times` times. */
export interface Mischief {
  readonly kind: "cut" | "damage" | "refuse" | "stall" | "unavailable";
  /** Number of bytes that are sent correctly before the failure. */
  readonly after?: number;
  times: number;
}

/** Serves a folder on its own port. */
export class FolderServer {
  /** The simulated failures, by file. */
  readonly mischief = new Map<string, Mischief>();
  /** The requests that were received: name of the file and offset. */
  readonly requests: { name: string; from: number }[] = [];
  ranges = true;
  /** Headers of every response. */
  headers: Readonly<Record<string, string>> = {};
  /** Content types of files whose names do not tell them. */
  types: Readonly<Record<string, string>> = {};
  url = "";
  files: Files;
  readonly #server: Server;

  private constructor(files: Files) {
    this.files = files;
    this.#server = createServer((request, response) => {
      this.#answer(request, response);
    });
  }

  static async start(files: Files): Promise<FolderServer> {
    const server = new FolderServer(files);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    server.url = `http://127.0.0.1:${(server.#server.address() as AddressInfo).port}/`;
    return server;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const name = (request.url ?? "/").slice(1);
    const bytes = this.files.get(name);
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1];
    const from = this.ranges ? Number(range ?? 0) : 0;
    this.requests.push({ name, from: Number(range ?? 0) });
    const mischief = this.#mischiefFor(name);
    if (!bytes || mischief?.kind === "refuse" || mischief?.kind === "unavailable") {
      response.writeHead(mischief?.kind === "unavailable" ? 503 : 404).end();
      return;
    }
    response.writeHead(from > 0 ? 206 : 200, {
      "Content-Length": bytes.length - from,
      "Content-Type": this.types[name] ?? TYPES[extname(name)] ?? "application/octet-stream",
      ...this.headers,
    });
    const body = Buffer.from(bytes.subarray(from));
    if (mischief?.kind === "stall") {
      response.write(body.subarray(0, mischief.after ?? 0)); // the response stops after these bytes
      return;
    }
    if (mischief?.kind === "cut") {
      response.write(body.subarray(0, mischief.after ?? 0), () => response.destroy());
      return;
    }
    if (mischief?.kind === "damage")
      body[mischief.after ?? 0] = (body[mischief.after ?? 0] ?? 0) ^ 1;
    response.end(body);
  }

  #mischiefFor(name: string): Mischief | undefined {
    const mischief = this.mischief.get(name);
    if (!mischief || mischief.times === 0) return undefined;
    mischief.times -= 1;
    return mischief;
  }
}
