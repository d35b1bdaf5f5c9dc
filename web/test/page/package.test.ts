/**
 * Tests the package in Chromium: its stores, and its engine on every kind of thread. WHERRY_MODEL
 * is the demo compiled for `wasm`, WHERRY_HARNESS a folder with the bundled harness.js and
 * worker.js.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";

import { defaultThreads } from "../../src/engine/threads.js";
import { CHUNK } from "../../src/weights/kept_file.js";
import { type Files, folder, FolderServer } from "../model_folder.js";
import { launched } from "./browser.js";
import type { Harness } from "./harness.js";

const SHARD = "params_shard_0.bin";
const MODEL = process.env["WHERRY_MODEL"] ?? "";
const HARNESS = process.env["WHERRY_HARNESS"] ?? "";
const PAGE = '<!doctype html><title>tests</title><script type="module" src="harness.js"></script>';

let browser: Browser;
let context: BrowserContext;
let page: Page;
let server: FolderServer;

before(async () => {
  browser = await launched();
});
after(() => browser.close());

function filesOf(place: string, prefix = ""): Files {
  const names = readdirSync(place);
  return new Map(
    names.map((name) => [prefix + name, Uint8Array.from(readFileSync(join(place, name)))]),
  );
}

/** Open the harness page on a server that also has some files. */
async function open(
  files: Files,
  init?: () => void,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const html = Uint8Array.from(Buffer.from(PAGE));
  server = await FolderServer.start(
    new Map([...files, ...filesOf(HARNESS), ["index.html", html] as const]),
  );
  server.headers = headers;
  context = await browser.newContext();
  if (init) await context.addInitScript(init);
  page = await context.newPage();
  await show();
}

async function show(): Promise<void> {
  await page.goto(`${server.url}index.html`);
  await page.waitForFunction(() => "harness" in globalThis);
}

async function close(): Promise<void> {
  await context.close();
  server.stop();
}

/** Call a function of the harness in the page. */
function call<Name extends keyof Harness>(
  name: Name,
  ...args: Parameters<Harness[Name]>
): ReturnType<Harness[Name]> {
  const done = page.evaluate(
    ([function_, given]) => {
      const { harness } = globalThis as unknown as {
        harness: Record<string, (...args: unknown[]) => unknown>;
      };
      return harness[function_]?.(...given);
    },
    [name, args] as const,
  );
  return done as ReturnType<Harness[Name]>;
}

const fetched = (): ReturnType<Harness["fetched"]> => call("fetched", server.url);

function offsets(): number[] {
  return server.requests.filter(({ name }) => name === SHARD).map(({ from }) => from);
}

/** Disable OPFS writes, as in browsers that cannot write private files from a page. */
function withoutOpfs(): void {
  Reflect.deleteProperty(FileSystemFileHandle.prototype, "createWritable");
}

for (const store of ["opfs", "cache"] as const) {
  describe(`a folder that is kept in ${store}`, () => {
    beforeEach(() => open(folder(), store === "cache" ? withoutOpfs : undefined));
    afterEach(close);

    it("goes on where a download was cut", async () => {
      server.mischief.set(SHARD, { kind: "cut", after: 6_000_000, times: 1 });
      assert.deepEqual(await fetched(), { store, wrong: [] });
      const [first, second, ...more] = offsets();
      assert.equal(first, 0);
      assert.ok((second ?? 0) > 0 && (second ?? 0) <= 6_000_000);
      assert.deepEqual(more, []);
    });

    it("refuses a damaged shard, and fetches it again", async () => {
      server.mischief.set(SHARD, { kind: "damage", after: 5_000_000, times: 1 });
      assert.deepEqual(await fetched(), { store, wrong: [] });
      assert.deepEqual(offsets(), [0, 0]);
      server.files = new Map([...server.files, ...folder({ seed: 2 })]);
      server.mischief.set(SHARD, { kind: "damage", after: 7, times: 9 });
      await assert.rejects(fetched(), /params_shard_0\.bin is not what wherry\.json lists/);
    });

    it("goes on after the page was left, from the last chunk that was kept", async () => {
      server.mischief.set(SHARD, { kind: "stall", after: CHUNK + 1_000_000, times: 1 });
      const left = fetched().catch(() => undefined);
      while ((await call("bytesKept")) < CHUNK) await new Promise((soon) => setTimeout(soon, 20));
      await show();
      await left;
      assert.deepEqual(await fetched(), { store, wrong: [] });
      assert.deepEqual(offsets(), [0, CHUNK]);
    });

    it("is fetched once by two pages", async () => {
      const first = page;
      page = await context.newPage();
      await show();
      const both = [fetched()];
      page = first;
      both.push(fetched());
      const intact = { store, wrong: [] };
      assert.deepEqual(await Promise.all(both), [intact, intact]);
      assert.deepEqual(offsets(), [0]);
    });

    it("needs the network once; what the disk has damaged is fetched again; is removed", async () => {
      await fetched();
      server.requests.length = 0;
      await show();
      assert.deepEqual(await fetched(), { store, wrong: [] });
      assert.deepEqual(offsets(), []);
      assert.equal(await call("damageChunks", 1), 1);
      assert.deepEqual(await fetched(), { store, wrong: [] });
      assert.deepEqual(offsets(), [CHUNK]);
      assert.deepEqual(await call("removed", server.url), []);
    });
  });
}

describe("a model that is removed", () => {
  before(() => open(folder()));
  after(close);

  it("leaves what is written at that moment, without an error", async () => {
    await fetched();
    const [during = 0, afterwards] = await call("removedInUse", server.url);
    assert.ok(during > 0);
    assert.equal(afterwards, 0);
  });
});

describe("an engine", () => {
  const CONTENTS = ["What is the capital of France?", "What is two plus three?"];
  before(() => open(filesOf(MODEL, "models/demo/")));
  after(close);

  for (const place of ["page", "worker", "shared worker", "service worker"] as const) {
    it(`answers in a ${place}`, async () => {
      const report = await call("answer", place, `${server.url}models/demo/`, CONTENTS);
      assert.equal(report.texts[0], "Paris.");
      assert.match(report.texts[1] ?? "", /five/i);
      assert.equal(report.streamed, report.texts[0]);
      const [complete, streamed, refused] = report.client;
      assert.deepEqual([complete, streamed], [report.texts[0], report.texts[0]]);
      assert.equal(refused, "404 model_not_found");
      assert.match(report.json, /^\{"n": [45]\}$/);
      assert.equal(report.left, 0);
      assert.equal(report.refused, "RequestError");
      assert.equal(report.threads, 1);
    });
  }
});

describe("a worker that fails", () => {
  before(() => open(new Map()));
  after(close);

  for (const kind of ["worker", "shared worker"] as const) {
    it(`has a reason: a ${kind}`, async () => {
      const [missing, throws, silent] = [
        await call("failure", "missing.js", kind),
        await call("failure", 'throw new Error("boom");', kind),
        await call("failure", "console.log(1);", kind),
      ];
      assert.equal(missing, "WorkerError: The worker did not start: its script cannot be loaded");
      assert.match(throws, /^WorkerError: The worker did not start: .*boom/);
      assert.match(silent, /^WorkerError: The worker did not start: it has not answered for 3 s/);
    });
  }
});

describe("an engine in an isolated page", () => {
  const ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
  };
  before(() => open(filesOf(MODEL, "models/demo/"), undefined, ISOLATION));
  after(close);

  it("has several threads in a worker, and answers as with one", async () => {
    const url = `${server.url}models/demo/`;
    const contents = ["What is the capital of France?", "Tell me a story about a fox."];
    const alone = await call("answer", "worker", url, contents, { threads: 1 });
    assert.equal(alone.texts[0], "Paris.");
    const three = await call("answer", "worker", url, contents, { threads: 3 });
    assert.deepEqual(three, { ...alone, threads: 3 });
    const { threads } = await call("answer", "worker", url, contents);
    assert.equal(threads, defaultThreads(await page.evaluate(() => navigator.hardwareConcurrency)));
    const here = await call("answer", "page", url, contents, { threads: 2 });
    assert.deepEqual(here, alone); // a page's main thread must not wait, so it has one thread
    server.headers = { ...ISOLATION, "Content-Security-Policy": "worker-src 'self'" };
    await show();
    assert.deepEqual(await call("answer", "worker", url, contents, { threads: 2 }), alone);
  });
});
