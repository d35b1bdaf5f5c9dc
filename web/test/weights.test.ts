/** Tests folders over the network: interrupted, damaged, stored, removed, refused. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";

import { openSource } from "../src/engine/open_source.js";
import { DamagedFileError, DownloadError, ModelError, QuotaError } from "../src/errors.js";
import {
  type CachedFolderOptions,
  findManifest,
  openCached,
} from "../src/weights/cached_folder.js";
import { joined, type ModelFolder } from "../src/weights/folder.js";
import { CHUNK } from "../src/weights/kept_file.js";
import { MemoryStore } from "../src/weights/memory_store.js";
import { keptModels, removeKept } from "../src/weights/model_records.js";
import { openPicked } from "../src/weights/picked_folder.js";
import { quotaExceeded } from "../src/weights/quota.js";
import { type Files, folder, FolderServer } from "./model_folder.js";

const SHARD = "params_shard_0.bin";
const LENGTH = 9_500_000;
let server: FolderServer;
let store: MemoryStore;
const files = folder();

beforeEach(async () => {
  server = await FolderServer.start(files);
  store = new MemoryStore();
});
afterEach(() => {
  server.stop();
});

async function open(options: Partial<CachedFolderOptions> = {}): Promise<ModelFolder> {
  const all = { store, ...options };
  return openCached(await findManifest(server.url, all), all);
}

async function assertComplete(model: ModelFolder): Promise<void> {
  for (const name of [SHARD, "tokenizer.json", "model.wasm"]) {
    const bytes = await joined(files.get(name)?.length ?? 0, model.stream(name));
    assert.ok(Buffer.from(bytes).equals(Buffer.from(files.get(name) ?? [])), name);
  }
}

describe("a folder on a server", () => {
  it("is fetched once and kept", async () => {
    const seen: number[] = [];
    const model = await open({ progress: (done, total) => seen.push(done / total) });
    await assertComplete(model);
    assert.equal(seen.at(0), 0);
    assert.equal(seen.at(-1), 1);
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
    );
    server.requests.length = 0;
    await assertComplete(await open());
    assert.deepEqual(
      server.requests.map(({ name }) => name),
      ["wherry.json"],
    );
  });

  it("opens without a network once it is kept", async () => {
    await open();
    server.stop();
    const offline = (): Promise<Response> => Promise.reject(new TypeError("failed to fetch"));
    await assertComplete(await open({ fetch: offline }));
  });

  it("opens without a network also after variants that were skipped", async () => {
    const gpu = folder({ target: { name: "webgpu" }, shards: [100] });
    const prefixed = (prefix: string, all: Files): Files =>
      new Map([...all].map(([name, bytes]) => [prefix + name, bytes]));
    server.files = new Map([...prefixed("gpu/", gpu), ...prefixed("cpu/", files)]);
    const urls = [`${server.url}gpu/`, `${server.url}cpu/`];
    await openSource(urls, undefined, { store });
    assert.deepEqual(
      (await keptModels(store)).map(({ url }) => url),
      urls.slice(1),
    );
    server.stop();
    const offline = (): Promise<Response> => Promise.reject(new TypeError("failed to fetch"));
    const [kept] = await openSource(urls, undefined, { store, fetch: offline });
    await assertComplete(kept);
    await removeKept(store, urls[1] ?? "");
    assert.deepEqual(await store.names("blobs"), []);
  });

  it("goes on where a download was cut", async () => {
    server.mischief.set(SHARD, { kind: "cut", after: 6_000_000, times: 1 });
    await assertComplete(await open());
    const offsets = server.requests.filter(({ name }) => name === SHARD).map(({ from }) => from);
    assert.equal(offsets[0], 0);
    assert.equal(offsets.length, 2);
    assert.ok((offsets[1] ?? 0) > 0 && (offsets[1] ?? 0) <= 6_000_000);
  });

  it("goes on after a page was closed, from the last chunk that was kept", async () => {
    const controller = new AbortController();
    const stop = open({
      signal: controller.signal,
      progress: (done) => {
        if (done > CHUNK + 1_000_000) controller.abort();
      },
    });
    await assert.rejects(stop, { name: "AbortError", code: "aborted" });
    server.requests.length = 0;
    await assertComplete(await open());
    const again = server.requests.find(({ name }) => name === SHARD);
    assert.equal(again?.from, CHUNK);
  });

  it("goes on with servers that know no ranges", async () => {
    server.ranges = false;
    server.mischief.set(SHARD, { kind: "cut", after: 5_000_000, times: 2 });
    await assertComplete(await open());
  });

  it("fetches a damaged file again, and once only", async () => {
    server.mischief.set(SHARD, { kind: "damage", after: 5_000_000, times: 1 });
    await assertComplete(await open());
    server.mischief.set(SHARD, { kind: "damage", after: 7, times: 9 });
    store = new MemoryStore();
    await assert.rejects(open(), (error: DamagedFileError) => {
      assert.ok(error instanceof DamagedFileError);
      assert.equal(error.file, SHARD);
      return true;
    });
  });

  it("takes no more bytes than are listed", async () => {
    let sent = 0;
    const endless = (name: string) => (url: RequestInfo | URL, init?: RequestInit) => {
      if (!(url as string).endsWith(name)) return fetch(url, init);
      const body = new ReadableStream({
        pull(controller) {
          sent += 1 << 20;
          assert.ok(sent < 100 << 20, "the download does not end");
          controller.enqueue(new Uint8Array(1 << 20));
        },
      });
      return Promise.resolve(new Response(body));
    };
    for (const [name, limit] of [
      [SHARD, 2 * LENGTH],
      ["wherry.json", 16 << 20],
    ] as const) {
      sent = 0;
      await assert.rejects(open({ fetch: endless(name) }), DamagedFileError);
      assert.ok(sent < limit + (4 << 20), `${sent} bytes of ${name}`);
    }
  });

  it("fetches again from the chunk that was damaged in the store", async () => {
    await open();
    const chunks = (await store.names("blobs")).filter((name) => name.includes("/000001-"));
    assert.equal(chunks.length, 1);
    await store.put(chunks[0] ?? "", new Uint8Array(CHUNK));
    const model = await open();
    server.requests.length = 0;
    await assertComplete(model);
    assert.deepEqual(server.requests, [{ name: SHARD, from: CHUNK }]);
  });

  it("is tried again when a server has no time, and not where it says no", async () => {
    server.mischief.set(SHARD, { kind: "unavailable", times: 2 });
    await assertComplete(await open());
    store = new MemoryStore();
    server.mischief.set(SHARD, { kind: "refuse", times: 9 });
    server.requests.length = 0;
    await assert.rejects(open(), (error: DownloadError) => {
      assert.ok(error instanceof DownloadError);
      assert.equal(error.status, 404);
      assert.equal(error.url, server.url + SHARD);
      return true;
    });
    assert.equal(server.requests.filter(({ name }) => name === SHARD).length, 1);
  });

  it("is refused before its first byte where it does not fit", async () => {
    const storage = { estimate: () => Promise.resolve({ usage: 900, quota: 1_000_900 }) };
    Object.defineProperty(globalThis, "navigator", { value: { storage }, configurable: true });
    try {
      await assert.rejects(open({ mustKeep: true }), (error: QuotaError) => {
        assert.ok(error instanceof QuotaError);
        assert.equal(error.available, 1_000_000);
        assert.ok((error.missing ?? 0) > LENGTH - 1_000_000);
        assert.match(error.message, /8\.\d MiB are missing/);
        return true;
      });
      assert.deepEqual(
        server.requests.map(({ name }) => name),
        ["wherry.json"],
      );
      const model = await open();
      await assertComplete(model);
      assert.equal(model.kept, false);
      assert.deepEqual(await store.names("blobs"), []);
    } finally {
      Reflect.deleteProperty(globalThis, "navigator");
    }
  });

  it("is read from memory where the browser stops keeping, or keeps nothing", async () => {
    const full = new DOMException("full", "QuotaExceededError");
    const room = { estimate: () => Promise.resolve({ usage: 0, quota: 10 ** 12 }) };
    Object.defineProperty(globalThis, "navigator", {
      value: { storage: room },
      configurable: true,
    });
    try {
      for (const most of [0, 2]) {
        const small = new MemoryStore();
        let left = most;
        const put = small.put.bind(small);
        small.put = async (name, value) => {
          left -= 1;
          if (left < 0) throw await quotaExceeded(full, value.byteLength);
          await put(name, value);
        };
        Object.defineProperty(small, "shared", { value: true });
        const model = await open({ store: small });
        await assertComplete(model);
        assert.equal(model.kept, false);
        await assert.rejects(open({ store: small, mustKeep: true }), (error: QuotaError) => {
          assert.match(
            error.message,
            /to be kept, more than this browser or the disk takes\. Remove/,
          );
          return error.missing === undefined;
        });
      }
    } finally {
      Reflect.deleteProperty(globalThis, "navigator");
    }
  });

  it("is refused if its manifest is damaged, or of something else", async () => {
    const manifest = Buffer.from(files.get("wherry.json") ?? []).toString();
    const changed = (from: string, to: string): Uint8Array<ArrayBuffer> =>
      Uint8Array.from(Buffer.from(manifest.replace(from, to)));
    server.files = new Map([["wherry.json", changed('"max_batch": 8', '"max_batch": 9')]]);
    await assert.rejects(open(), DamagedFileError);
    server.files = new Map([["wherry.json", changed('"schema": 2', '"schema": 99')]]);
    await assert.rejects(open(), { name: "ModelError", message: /schema 99.*reads schema 2/s });
    server.files = new Map([["wherry.json", changed("{", "")]]);
    await assert.rejects(open(), ModelError);
  });
});

describe("kept models", () => {
  it("are listed and removed; what others share stays", async () => {
    await open();
    const first = server.url;
    const other = await FolderServer.start(folder({ name: "other", shards: [5000], seed: 1 }));
    try {
      await openCached(await findManifest(other.url, { store }), { store });
      const listed = await keptModels(store);
      assert.deepEqual(listed.map(({ name }) => name).sort(), ["other", "small"]);
      assert.ok(listed.every(({ bytes, total }) => bytes === total));
      await removeKept(store, first);
      assert.deepEqual(
        (await keptModels(store)).map(({ name, bytes, total }) => [name, bytes === total]),
        [["other", true]],
      );
      await removeKept(store, other.url);
      assert.deepEqual(await store.names("blobs"), []);
    } finally {
      other.stop();
    }
  });

  it("lose what an older version of them had", async () => {
    await open();
    server.files = folder({ seed: 5 });
    await open();
    const [model] = await keptModels(store);
    const names = await store.names("blobs");
    const kept = await Promise.all(names.map(async (name) => (await store.get(name))?.length ?? 0));
    const bytes = kept.reduce((sum, size) => sum + size, 0);
    assert.equal(bytes, model?.total);
  });
});

describe("a folder that was picked", () => {
  const picked = (
    change: (all: Map<string, Blob>) => void = () => undefined,
  ): Map<string, Blob> => {
    const all = new Map([...files].map(([name, bytes]) => [name, new Blob([bytes])]));
    change(all);
    return all;
  };

  it("is read where it lies", async () => {
    await assertComplete(await openPicked("mine", picked()));
  });

  it("is refused with all that is wrong", async () => {
    const wrong = picked((all) => {
      all.delete("model.wasm");
      all.set(SHARD, new Blob(["short"]));
    });
    const message = /model\.wasm is missing; params_shard_0\.bin has 5 bytes, not 9500000/;
    await assert.rejects(openPicked("mine", wrong), { name: "DamagedFileError", message });
    await assert.rejects(openPicked("mine", new Map()), ModelError);
  });

  it("is refused at the end of a file that has changed", async () => {
    const bytes = files.get(SHARD)?.slice() ?? new Uint8Array();
    bytes[77] = (bytes[77] ?? 0) ^ 1;
    const model = await openPicked(
      "mine",
      picked((all) => all.set(SHARD, new Blob([bytes]))),
    );
    await assert.rejects(joined(LENGTH, model.stream(SHARD)), DamagedFileError);
  });
});
