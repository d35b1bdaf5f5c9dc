/**
 * The page in a browser, as a person uses it. WHERRY_SITE is its address, WHERRY_SHOTS a folder for
 * pictures of it, CHROMIUM the browser.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { join } from "node:path";

import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const SITE = process.env["WHERRY_SITE"] ?? "";
const SHOTS = process.env["WHERRY_SHOTS"] ?? "";
const WIDE = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const PATIENCE = 120_000; // ms: the machine may be busy
const ARGS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"];

let browser: Browser;
let context: BrowserContext;
let page: Page;
const wrong: string[] = []; // errors of the page

async function shot(name: string): Promise<void> {
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: "disabled" });
}

async function violations(): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe: tool } = globalThis as unknown as { axe: typeof axe };
    return (await tool.run()).violations;
  });
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

async function ready(): Promise<void> {
  await page.waitForSelector("#model-dot.ready", { timeout: PATIENCE });
}

async function ask(text: string): Promise<string> {
  const before = await page.locator(".foot").count();
  await page.fill("#text", text);
  await page.press("#text", "Enter");
  await page.waitForFunction((count) => document.querySelectorAll(".foot").length > count, before, {
    timeout: PATIENCE,
  });
  return page.locator("article .body").last().innerText();
}

before(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "", args: ARGS });
  context = await browser.newContext({ viewport: WIDE, colorScheme: "light" });
  page = await context.newPage();
  page.setDefaultTimeout(PATIENCE / 4);
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") wrong.push(message.text());
  });
  await page.goto(SITE);
});
after(() => browser.close());

describe("the page", () => {
  it("is ready within seconds, and answers", async () => {
    await ready();
    assert.deepEqual(await violations(), []);
    await shot("hello");
    assert.equal(await page.title(), "demo · Wherry");
    assert.match(await ask("What is the capital of France?"), /Paris/);
    assert.match(await page.locator(".foot").last().innerText(), /\d+ tokens · .*tokens\/s/);
    assert.match(await page.locator("#said").innerText(), /Paris/); // for who hears the page
  });

  it("shows text as it comes, and stops by a key", async () => {
    await page.fill("#text", "Tell me a long story about a fox.");
    await page.press("#text", "Enter");
    await page.waitForFunction(() => {
      const last = document.querySelector("article:last-child .body");
      return (last?.textContent.length ?? 0) > 40;
    });
    assert.equal(await page.locator("#send").getAttribute("aria-label"), "Stop");
    await shot("streaming");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelectorAll(".foot").length === 2);
    assert.match(await page.locator(".foot").last().innerText(), /stopped/);
    assert.equal(await page.locator("#send").getAttribute("aria-label"), "Send");
    await page.press("#text", "ArrowUp");
    assert.equal(await page.inputValue("#text"), "Tell me a long story about a fox.");
  });

  it("finds the beginning of a conversation in the cache", async () => {
    await ask("And what is two plus three?");
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll("#numbers div")];
      const hits = rows.find((row) => row.textContent.startsWith("prefix hits"));
      return Number.parseInt(hits?.querySelector("dd")?.textContent ?? "0") > 0;
    });
    assert.deepEqual(await violations(), []);
    await shot("chat");
  });

  it("is driven by the keyboard alone", async () => {
    await page.click("body", { position: { x: 5, y: 400 } });
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "text");
    await page.keyboard.press("Control+Shift+O");
    assert.equal(await page.locator("article").count(), 0);
    await page.focus("#models");
    await page.keyboard.press("Enter");
    assert.ok(await page.locator("#models-dialog").isVisible());
    await page.waitForSelector("#model-list li");
    assert.match(await page.locator("#model-list").innerText(), /demo[^]*kept in this browser/);
    assert.deepEqual(await violations(), []);
    await shot("models");
    await page.keyboard.press("Escape");
    assert.ok(!(await page.locator("#models-dialog").isVisible()));
  });

  it("has settings that answers follow", async () => {
    await page.click("#tune");
    await page.fill("#max_tokens", "3");
    assert.deepEqual(await violations(), []);
    await page.click("#tune-dialog .primary");
    await ask("Tell me a story.");
    assert.match(await page.locator(".foot").last().innerText(), /3 tokens.*cut off/);
    await page.evaluate(() => sessionStorage.clear());
  });

  it("shows the engine at work on several conversations", async () => {
    await page.click('nav a[href="#engine"]');
    await page.focus("#crowd-size");
    await page.keyboard.press("ArrowRight");
    await page.click("#crowd-start");
    await page.waitForFunction(() => document.querySelectorAll(".lane.writing").length >= 3);
    await page.waitForFunction(() => document.querySelector("#pages .used") !== null);
    await page.waitForFunction(() => {
      const label = document.querySelector("#plot svg")?.getAttribute("aria-label") ?? "";
      return Number.parseFloat(/([\d.]+) now/.exec(label)?.[1] ?? "0") > 0;
    });
    assert.equal(await page.locator(".lane").count(), 5);
    assert.deepEqual(await violations(), []);
    await shot("engine");
    await page.click("#theme");
    assert.deepEqual(await violations(), []);
    await shot("engine-dark");
    await page.setViewportSize(PHONE);
    assert.deepEqual(await violations(), []);
    await shot("engine-phone");
    await page.click("#crowd-start");
    await page.waitForFunction(() => document.querySelectorAll(".lane.writing").length === 0);
    await page.click('nav a[href="#chat"]');
    await shot("chat-phone-dark");
    const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.ok(!wider, "the page is wider than the phone");
  });

  it("needs no network for its model the second time", async () => {
    await context.route("**/models/**", (route) => route.abort());
    await page.reload();
    await ready();
    await context.unroute("**/models/**");
    assert.match(await ask("What is two plus three?"), /five/i);
  });

  it("says what is wrong with a model, and loads it again", async () => {
    await context.route("**/tokenizer.json", (route) =>
      route.fulfill({ body: "{}", contentType: "application/json" }),
    );
    await page.click("#models");
    await page.getByRole("button", { name: "Remove demo from this browser" }).click();
    await page.locator("#model-list .choose").first().click();
    await page.waitForSelector("#model-dot.failed");
    assert.match(await page.locator(".failure").innerText(), /tokenizer\.json/);
    await context.unroute("**/tokenizer.json");
    await page.click("#models");
    await page.locator("#model-list .choose").first().click();
    await ready();
  });

  it("has no errors of its own", () => {
    const others = wrong.filter((text) => !text.includes("net::ERR_FAILED")); // asked for, above
    assert.deepEqual(others, []);
  });
});
