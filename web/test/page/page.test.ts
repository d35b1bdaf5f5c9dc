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
import { smallTargets, visibleText } from "./shown.js";

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

/**
 * Check that the page shows these messages and answers, each once, and nothing else. An answer is
 * followed by the note below it.
 */
async function showsExactly(...turns: readonly string[]): Promise<void> {
  // the frame that was asked for by the end of an answer
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn))));
  const expected = ["Wherry demo Chat Engine", ...turns].join("").replace(/\s+/g, "");
  assert.equal(await visibleText(page, "#numbers"), expected);
}

async function note(): Promise<string> {
  return page.locator(".foot span").last().innerText();
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

  it("shows each text once: finished, stopped, and answered again", async () => {
    await demo.ready();
    await page.click("#fresh");
    const first = "Tell me a story about a fox.";
    for (let again = 0; again < 2; again += 1) {
      if (again === 0) await demo.ask(first);
      else {
        await page.getByRole("button", { name: "Another answer" }).click();
        await page.waitForSelector("#send:not(.running)");
      }
      const answer = (await demo.heard()).at(-1) ?? "";
      assert.ok(answer.length > 40);
      await showsExactly(first, answer, "Copy Another answer", await note());
    }
    const answer = (await demo.heard()).at(-1) ?? "";
    const firstNote = await note();
    const second = "Tell me a long story about a boat.";
    const release = await holdSteps(page, 30); // fewer steps than the answer needs
    await demo.begin(second, 40);
    await page.click("#send");
    await page.waitForFunction(() => document.querySelectorAll(".foot").length === 2);
    const stopped = await page.evaluate(() => {
      const turns = JSON.parse(sessionStorage.getItem("wherry.turns") ?? "[]") as {
        content: string;
      }[];
      return turns.at(-1)?.content ?? "";
    });
    assert.ok(stopped.length > 40);
    assert.ok(((await demo.heard()).at(-1) ?? "").startsWith(stopped));
    assert.match(await note(), /stopped/);
    const said = [first, answer, "Copy", firstNote, second, stopped, "Copy Another answer"];
    await showsExactly(...said, await note());
    await demo.shot("stopped");
    await release();
    await page.click("#fresh");
  });

  it("keeps the conversation when its tab is closed, and edits a message", async () => {
    await demo.ask("What is two plus three?");
    const kept = await visibleText(page, "#numbers");
    const second = await DemoPage.beside(demo, process.env["WHERRY_SITE"] ?? "");
    await second.ready();
    assert.equal(await visibleText(second.page, "#numbers"), kept);
    await second.page.getByRole("button", { name: "Edit" }).click();
    await second.shot("edit");
    assert.deepEqual(await second.violations(), []);
    await second.page.keyboard.press("Escape");
    assert.equal(await visibleText(second.page, "#numbers"), kept);
    await second.page.getByRole("button", { name: "Edit" }).click();
    await second.page.locator(".edit textarea").fill("What is the capital of France?");
    await second.page.getByRole("button", { name: "Send" }).first().click();
    await second.page.waitForSelector(".foot");
    assert.match(await second.page.locator("article").innerText(), /Paris/);
    assert.equal(await second.page.locator(".turn").count(), 2);
    assert.deepEqual(second.wrong, []);
    await second.page.close();
    await page.click("#fresh");
  });

  it("queues a message while the model loads", async () => {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    await context.route("**/models/**", async (route) => {
      await gate;
      await route.continue();
    });
    await page.evaluate(() =>
      navigator.storage
        .getDirectory()
        .then((top) => top.removeEntry("wherry", { recursive: true })),
    );
    await page.reload();
    await page.fill("#text", "What is the capital of France?");
    await page.press("#text", "Enter");
    await page.getByText("Queued until the model is ready", { exact: true }).waitFor();
    assert.deepEqual(await demo.violations(), []);
    await demo.shot("queued");
    await page.fill("#text", "And then?");
    assert.ok(await page.locator("#send").isDisabled());
    await page.fill("#text", "");
    go();
    await page.waitForSelector(".foot");
    await context.unroute("**/models/**");
    const [answer = ""] = await demo.heard();
    assert.match(answer, /Paris/);
    await showsExactly(
      "What is the capital of France?",
      answer,
      "Copy Another answer",
      await note(),
    );
  });

  it("is an app with an icon, and fits fingers", async () => {
    const session = await context.newCDPSession(page);
    const { errors, url, data } = await session.send("Page.getAppManifest");
    assert.match(url, /manifest\.json$/);
    assert.deepEqual(errors, []);
    assert.equal((JSON.parse(data ?? "") as { name: string }).name, "Wherry");
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    const ids = installabilityErrors.map(({ errorId }) => errorId);
    assert.deepEqual(
      ids.filter((id) => id !== "in-incognito"),
      [],
    );
    const options = { viewport: PHONE, hasTouch: true, isMobile: true };
    const phone = await DemoPage.open(browser, process.env["WHERRY_SITE"] ?? "", options);
    await phone.ready();
    assert.deepEqual(await smallTargets(phone.page), []);
    await phone.ask("What is two plus three?");
    await phone.shot("fingers");
    assert.deepEqual(await smallTargets(phone.page), []);
    for (const button of ["#tune", "#models"]) {
      await phone.page.click(button);
      assert.deepEqual(await smallTargets(phone.page), []);
      await phone.page.keyboard.press("Escape");
    }
    await phone.page.getByRole("button", { name: "Edit" }).click();
    assert.deepEqual(await smallTargets(phone.page), []);
    await phone.page.click('nav a[href="#engine"]');
    assert.deepEqual(await smallTargets(phone.page), []);
    await phone.context.close();
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
    const edited = page.locator(".edit textarea");
    assert.equal(await edited.inputValue(), "Tell me a long story about a fox.");
    await edited.press("Escape");
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
