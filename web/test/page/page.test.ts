/**
 * Tests the demo page in a browser, as a person uses it. WHERRY_SITE is its address with a model
 * for CPUs, WHERRY_SHOTS a folder for screenshots, CHROMIUM the browser.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";

import { defaultThreads } from "../../src/engine/threads.js";
import { launched } from "./browser.js";
import { DemoPage, PHONE, WIDE } from "./demo_page.js";
import { holdSteps } from "./held_steps.js";

let browser: Browser;
let demo: DemoPage;
let context: BrowserContext;
let page: Page;

before(async () => {
  browser = await launched();
  demo = await DemoPage.open(browser, process.env["WHERRY_SITE"] ?? "");
  ({ context, page } = demo);
});
after(() => browser.close());

async function noViolations(): Promise<void> {
  assert.deepEqual(await demo.violations(), []);
}

describe("the page", () => {
  it("is ready within seconds, and answers", async () => {
    await demo.ready();
    await noViolations();
    await demo.shot("hello");
    assert.equal(await page.title(), "demo · Wherry");
    assert.match(await demo.ask("What is the capital of France?"), /Paris/);
    assert.match(await demo.foot(), /\d+ tokens · .*tokens\/s/);
    // the text that screen readers announce
    assert.match(await page.locator("#said").innerText(), /Paris/);
    const processors = await page.evaluate(() => navigator.hardwareConcurrency);
    const threads = defaultThreads(processors);
    const expected = threads > 1 ? `CPU, ${threads} threads` : "CPU";
    // the page is cross-origin isolated, so it may use threads
    assert.equal(await demo.number("runs on"), expected);
  });

  it("shows text as it comes, and stops by a key", async () => {
    const release = await holdSteps(page, 30); // fewer steps than the answer needs
    await demo.begin("Tell me a long story about a fox.", 40);
    assert.equal(await page.locator("#send").getAttribute("aria-label"), "Stop");
    await demo.shot("streaming");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelectorAll(".foot").length === 2);
    assert.match(await demo.foot(), /stopped/);
    await release();
    await page.waitForFunction(() =>
      document.querySelector("#batch-note")?.textContent.startsWith("0 writing"),
    );
    assert.equal(await page.locator("#send").getAttribute("aria-label"), "Send");
    await page.press("#text", "ArrowUp");
    assert.equal(await page.inputValue("#text"), "Tell me a long story about a fox.");
  });

  it("finds the beginning of a conversation in the cache", async () => {
    await demo.ask("And what is two plus three?");
    assert.match(await demo.foot(), /\d+ tokens from the cache/);
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll("#numbers div")];
      const hits = rows.find((row) => row.textContent.startsWith("prefix hits"));
      return Number.parseInt(hits?.querySelector("dd")?.textContent ?? "0") > 0;
    });
    await demo.shot("chat");
  });

  it("is driven by the keyboard alone", async () => {
    await page.click("body", { position: { x: 5, y: 400 } });
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "text");
    await page.focus("#models");
    await page.keyboard.press("Enter");
    assert.ok(await page.locator("#models-dialog").isVisible());
    await page.waitForSelector("#model-list li");
    assert.match(await page.locator("#model-list").innerText(), /demo[^]*kept in this browser/);
    await noViolations();
    await demo.shot("models");
    await page.keyboard.press("Escape");
    assert.ok(!(await page.locator("#models-dialog").isVisible()));
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
    await demo.shot("engine");
  });

  it("is there for everybody: both views, light and dark, wide and on a phone", async () => {
    for (const theme of ["light", "dark"]) {
      if (theme === "dark") await page.click("#theme");
      for (const [kind, size] of Object.entries({ wide: WIDE, phone: PHONE })) {
        await page.setViewportSize(size);
        for (const view of ["chat", "engine"]) {
          await page.click(`nav a[href="#${view}"]`);
          await noViolations();
          await demo.shot(`${view}-${theme}-${kind}`);
          const wider = await page.evaluate(
            () => document.documentElement.scrollWidth > innerWidth,
          );
          assert.ok(!wider, `${view} is wider than the screen`);
        }
      }
    }
    await page.setViewportSize(WIDE);
    await page.click("#crowd-start");
    await page.waitForFunction(() => document.querySelectorAll(".lane.writing").length === 0);
    await page.click('nav a[href="#chat"]');
  });

  it("has settings that answers follow", async () => {
    await page.keyboard.press("Control+Shift+O");
    assert.equal(await page.locator("article").count(), 0);
    await page.click("#tune");
    await page.fill("#max_tokens", "3");
    await noViolations();
    await demo.shot("settings");
    await page.click("#tune-dialog .primary");
    await demo.ask("Tell me a story.");
    assert.match(await demo.foot(), /3 tokens.*cut off/);
    await page.evaluate(() => sessionStorage.clear());
  });

  it("needs no network for its model the second time", async () => {
    await context.route("**/models/**", (route) => route.abort());
    await page.reload();
    await demo.ready();
    await context.unroute("**/models/**");
    assert.match(await demo.ask("What is two plus three?"), /five/i);
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
    await demo.ready();
  });

  it("has no errors of its own", () => {
    // the test itself has aborted these requests
    const others = demo.wrong.filter((text) => !text.includes("net::ERR_FAILED"));
    assert.deepEqual(others, []);
  });
});
