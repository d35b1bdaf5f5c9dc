/**
 * Functions that tests call in a page, where the package uses the stores and workers of a real
 * browser.
 */
import type { EngineConfig } from "../../src/core/core.js";
import OpenAI from "openai";

import { createFetch, type Engine, MLCEngine, ModelCache } from "../../src/index.js";
import { findManifest, openCached } from "../../src/weights/cached_folder.js";
import { filesRead } from "../../src/weights/folder.js";
import { sha256 } from "../../src/weights/sha256.js";
import { connect, type RemoteEngine } from "../../src/worker.js";

/** The kinds of threads on which an engine may run. */
export type Place = "page" | "worker" | "shared worker" | "service worker";

/**
 * Download a folder as an engine does; return the kind of store, and the files that are damaged.
 */
async function fetched(url: string): Promise<{ store: string; wrong: string[] }> {
  const { kind, store } = await ModelCache.open();
  const folder = await openCached(await findManifest(url, { store }), { store });
  const wrong: string[] = [];
  for (const [name, record] of filesRead(folder.manifest)) {
    if ((await sha256(await folder.bytes(name))) !== record.sha256) wrong.push(name);
  }
  return { store: kind, wrong };
}

/** Overwrite all stored chunks of this number; return how many there were. */
async function damageChunks(index: number): Promise<number> {
  const { store } = await ModelCache.open();
  const number = `/${String(index).padStart(6, "0")}-`;
  const names = (await store.names("blobs")).filter((name) => name.includes(number));
  for (const name of names) {
    const bytes = await store.get(name);
    await store.put(name, new Uint8Array(bytes?.length ?? 0));
  }
  return names.length;
}

/** Count the stored bytes of all models; a file that is being written has a name but no bytes. */
async function bytesKept(): Promise<number> {
  const { store } = await ModelCache.open();
  const all = await Promise.all((await store.names("blobs")).map((name) => store.get(name)));
  return all.reduce((sum, bytes) => sum + (bytes?.length ?? 0), 0);
}

/** Remove a model; return the names of all files that remain in the store. */
async function removed(url: string): Promise<string[]> {
  const cache = await ModelCache.open();
  await cache.remove(url);
  return cache.store.names("blobs");
}

/**
 * Remove a model while one of its files is written; return the number of files then, and after the
 * write.
 */
async function removedInUse(url: string): Promise<number[]> {
  const { store } = await ModelCache.open();
  const [name = ""] = await store.names("blobs");
  let folder = await navigator.storage.getDirectory();
  const parts = ["wherry", ...name.split("/")];
  for (const part of parts.slice(0, -1)) folder = await folder.getDirectoryHandle(part);
  const file = await folder.getFileHandle(parts.at(-1) ?? "");
  const writable = await file.createWritable();
  const inUse = (await removed(url)).length;
  await writable.close();
  return [inUse, (await removed(url)).length];
}

async function engineIn(place: Place): Promise<RemoteEngine | MLCEngine> {
  switch (place) {
    case "page":
      return new MLCEngine();
    case "worker":
      return connect(new Worker("worker.js", { type: "module" }));
    case "shared worker":
      return connect(new SharedWorker("worker.js", { type: "module" }).port);
    case "service worker": {
      await navigator.serviceWorker.register("worker.js", { type: "module" });
      const { active } = await navigator.serviceWorker.ready;
      if (!active) throw new Error("no service worker is active");
      return connect(active);
    }
  }
}

const SCHEMA = {
  type: "object",
  properties: { n: { enum: [4, 5] } },
  required: ["n"],
  additionalProperties: false,
};

/** What OpenAI's client hears, whole and streamed; in a service worker through the page's own fetch. */
async function heardByClient(place: Place, engine: Engine, content: string): Promise<string[]> {
  const client = new OpenAI({
    baseURL: new URL("v1", location.href).href,
    apiKey: "-",
    dangerouslyAllowBrowser: true,
    maxRetries: 0,
    ...(place !== "service worker" && { fetch: createFetch(engine) }),
  });
  const model = (await client.models.list()).data[0]?.id ?? "";
  const messages = [{ role: "user" as const, content }];
  const request = { model, messages, temperature: 0, max_tokens: 24 };
  const { choices } = await client.chat.completions.create(request);
  const streamed = await client.chat.completions.stream(request).finalContent();
  const long = { ...request, max_tokens: 400, stream: true as const };
  for await (const _ of await client.chat.completions.create(long)) break; // aborts it
  const refused = await client.chat.completions
    .create({ ...request, model: "other" })
    .catch((error: unknown) => error);
  const { status, code } = refused as InstanceType<typeof OpenAI.APIError>;
  return [choices[0]?.message.content ?? "", streamed ?? "", `${status} ${code}`];
}

interface Report {
  texts: string[];
  streamed: string;
  json: string;
  left: number;
  refused: string;
  threads: number;
  client: string[];
}

/**
 * Return a model's greedy answer, with its engine on a kind of thread, and the threads in use at
 * the end.
 */
async function answer(
  place: Place,
  url: string,
  contents: readonly string[],
  limits: EngineConfig = {},
): Promise<Report> {
  const engine = await engineIn(place);
  const { threads } = await engine.load(url, { name: "demo", limits });
  const chat = (content: string): { messages: { role: "user"; content: string }[] } => ({
    messages: [{ role: "user", content }],
  });
  const options = { temperature: 0, max_tokens: 24 };
  const complete = await Promise.all(
    contents.map((content) => engine.chat.completions.create({ ...chat(content), ...options })),
  );
  let streamed = "";
  const first = { ...chat(contents[0] ?? ""), ...options, stream: true as const };
  for await (const { choices } of await engine.chat.completions.create(first)) {
    streamed += choices[0]?.delta.content ?? "";
  }
  const long = { ...chat("Tell me a story."), ignore_eos: true, stream: true as const };
  for await (const _ of await engine.chat.completions.create(long)) break;
  const constrained = await engine.chat.completions.create({
    ...chat("What is two plus three?"),
    ...options,
    response_format: { type: "json_schema", json_schema: { schema: SCHEMA } },
  });
  let refused = "";
  try {
    await engine.chat.completions.create({ ...chat("x"), temperature: 9 });
  } catch (error) {
    refused = (error as Error).name;
  }
  const client = await heardByClient(place, engine, contents[0] ?? "");
  await engine.chat.completions.create({ ...chat("x"), max_tokens: 1 });
  const { openRequests, pagesTotal, pagesFree } = await engine.stats();
  await engine.dispose();
  const texts = complete.map(({ choices }) => choices[0]?.message.content ?? "");
  const json = constrained.choices[0]?.message.content ?? "";
  const left = openRequests + pagesTotal - pagesFree;
  return { texts, streamed, json, left, refused, threads, client };
}

/** Return the error of a call to a worker with this script. */
async function failure(script: string, kind: "worker" | "shared worker"): Promise<string> {
  const url = script.endsWith(".js")
    ? script
    : URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const options = { type: "module" } as const;
  const target = kind === "worker" ? new Worker(url, options) : new SharedWorker(url, options);
  const engine = connect(target, { startTimeout: 3000 });
  const error = await engine.models().then(
    () => new Error("it has answered"),
    (failed: unknown) => failed as Error,
  );
  engine.close();
  return `${error.name}: ${error.message}`;
}

const harness = { answer, bytesKept, damageChunks, failure, fetched, removed, removedInUse };
export type Harness = typeof harness;
(globalThis as unknown as { harness: Harness }).harness = harness;
