/**
 * Tests the demo page when its server stops, and in two tabs. WHERRY_PLACE is a site with a model
 * for CPUs, WHERRY_SHOTS a folder for screenshots, CHROMIUM the browser.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, afterEach, it } from "node:test";
import type { Browser } from "playwright-core";

import { type Files, folder, FolderServer } from "../model_folder.js";
import { launched, SWIFTSHADER } from "./browser.js";
import { DemoPage } from "./demo_page.js";
import { holdSteps } from "./held_steps.js";

const PLACE = process.env["WHERRY_PLACE"] ?? "";
const SHARD = "models/demo/params_shard_0.bin";

let browser: Browser;
let server: FolderServer;

before(async () => {
  browser = await launched();
});
after(() => browser.close());

beforeEach(async () => {
  const names = readdirSync(PLACE, { recursive: true, withFileTypes: true });
  const files: Files = new Map(
    names
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path.slice(PLACE.length + 1), Uint8Array.from(readFileSync(path))]),
  );
  const index = files.get("index.html");
  assert.ok(index);
  server = await FolderServer.start(files.set("", index));
  server.types = { "": "text/html; charset=utf-8" };
  server.headers = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
  };
});
afterEach(() => {
  server.stop();
});

it("opens, answers, and has its conversation without a server", async () => {
  const demo = await DemoPage.open(browser, server.url);
  const { page } = demo;
  await demo.ready();
  assert.match(await demo.ask("What is the capital of France?"), /Paris/);
  await page.evaluate(() => navigator.serviceWorker.ready);
  const release = await holdSteps(page, 30);
  await demo.begin("Tell me a story about a fox.", 20);
  server.stop();
  await page.reload(); // the page is reloaded in the middle of an answer
  await demo.ready();
  await release().catch(() => undefined); // the reload has ended that worker
  assert.deepEqual(
    (await page.locator(".turn.user").allInnerTexts()).map((text) => text.replace(/^You: \s*/, "")),
    ["What is the capital of France?", "Tell me a story about a fox."],
  );
  assert.match(await page.locator("article .body").first().innerText(), /Paris/);
  assert.ok((await page.locator("article .body").last().innerText()).length >= 20);
  assert.match(await demo.ask("What is two plus three?"), /five/i);
  assert.ok(await page.evaluate(() => crossOriginIsolated));
  await page.click("#fresh");
  await page.reload();
  await demo.ready();
  assert.equal(await page.locator(".turn").count(), 0);
  await demo.context.close();
});

it("loads in one tab at a time, and says so in the other", async () => {
  server.mischief.set(SHARD, { kind: "stall", after: 1000, times: 1 });
  const first = await DemoPage.open(browser, server.url);
  await until(() => server.requests.some(({ name }) => name === SHARD));
  const second = await DemoPage.beside(first, server.url);
  await second.page.waitForSelector(".loading-card:has-text('Another tab')");
  await second.shot("another-tab");
  assert.deepEqual(await second.violations(), []);
  assert.equal(server.requests.filter(({ name }) => name === SHARD).length, 1);
  await first.page.close();
  await second.ready();
  assert.match(await second.ask("What is the capital of France?"), /Paris/);
  const third = await DemoPage.beside(second, server.url);
  await third.ready();
  assert.equal(server.requests.filter(({ name }) => name === SHARD).length, 2);
  await second.context.close();
});

it("tries again what failed", async () => {
  server.mischief.set("models/demo/wherry.json", { kind: "refuse", times: 1 });
  const demo = await DemoPage.open(browser, server.url);
  await demo.page.waitForSelector("#model-dot.failed");
  assert.match(await demo.page.locator(".failure").innerText(), /wherry\.json/);
  assert.deepEqual(await demo.violations(), []);
  await demo.shot("failed");
  await demo.page.click(".failure .retry");
  await demo.ready();
  assert.match(await demo.ask("What is the capital of France?"), /Paris/);
  await demo.context.close();
});

it("says why a model runs on the CPU, and what to do", async () => {
  const target = { name: "webgpu", device_features: ["shader-f16"] };
  for (const [name, bytes] of folder({ target, shards: [] }))
    server.files = new Map([...server.files, [`models/f16/${name}`, bytes] as const]);
  const list = Buffer.from(server.files.get("models.json") ?? []).toString();
  const both = list.replace('"models/demo/"', '"models/f16/", "models/demo/"');
  server.files = new Map([...server.files, ["models.json", Uint8Array.from(Buffer.from(both))]]);
  const far = ["--host-resolver-rules=MAP far.test 127.0.0.1"];
  for (const [name, flags, words] of [
    ["no-gpu", [], /no (GPU|WebGPU).* The model runs on the CPU, which is slower\. [SR]/],
    [
      "no-f16",
      SWIFTSHADER,
      /This GPU lacks shader-f16\..* wherry package MODEL -q q4f16_1 -q q4f32_1/,
    ],
    ["no-secure-page", far, /by http from another machine.* Open it by https/],
  ] as const) {
    const other = await launched(flags);
    const host = name === "no-secure-page" ? "far.test" : "127.0.0.1";
    const demo = await DemoPage.open(other, server.url.replace("127.0.0.1", host));
    await demo.ready();
    assert.match(await demo.page.locator(".hello .loading-card").innerText(), words);
    assert.deepEqual(await demo.violations(), []);
    await demo.shot(name);
    assert.match(await demo.ask("What is the capital of France?"), /Paris/);
    await other.close();
  }
});

async function until(happened: () => boolean): Promise<void> {
  while (!happened()) await new Promise((soon) => setTimeout(soon, 20));
}
