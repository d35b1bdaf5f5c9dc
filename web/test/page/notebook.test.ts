/**
 * Tests the notebook in a browser, as a person uses it. WHERRY_NOTEBOOK is its address,
 * WHERRY_SHOTS a folder for screenshots, CHROMIUM the browser.
 */
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { join } from "node:path";

import axe from "axe-core";
import { type Browser, chromium, type Locator, type Page } from "playwright-core";

import { holdSteps } from "./held_steps.js";

const PATIENCE = 120_000; // milliseconds that a test waits at most, because the machine may be busy
const ARGS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"];

let browser: Browser;
let page: Page;
const wrong: string[] = []; // errors that the page has reported

function cell(number: number): Locator {
  return page.locator(".cell").nth(number);
}

/** Wait for the end of a cell and return its output. */
async function output(number: number): Promise<string> {
  await page.waitForFunction(
    (at) =>
      document.querySelectorAll<HTMLElement>(".cell")[at]?.dataset["state"] === "done" &&
      /\d/.test(document.querySelectorAll(".count")[at]?.textContent ?? ""),
    number,
    { timeout: PATIENCE },
  );
  return cell(number).locator(".output").innerText();
}

/** Put code into the last, empty cell and run it. */
async function run(code: string): Promise<number> {
  await page.click("#add");
  const number = (await page.locator(".cell").count()) - 1;
  await cell(number).locator("textarea").fill(code);
  await cell(number).locator("textarea").press("Control+Enter");
  return number;
}

before(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "", args: ARGS });
  page = await browser.newPage({ viewport: { width: 1100, height: 1000 } });
  page.setDefaultTimeout(PATIENCE / 4);
  page.on("pageerror", (error) => wrong.push(error.message));
  await page.goto(process.env["WHERRY_NOTEBOOK"] ?? "");
  await page.waitForSelector("body[data-ready]", { timeout: PATIENCE });
});
after(() => browser.close());

it("runs its example: waits in synchronous code, streams, and asks several at once", async () => {
  await page.click("#run-all");
  assert.equal(await output(0), "");
  assert.equal(await output(1), "Paris.");
  const lines = (await output(2)).split("\n");
  assert.equal(lines.filter((line) => line.includes(" -> ")).length, 3);
  assert.match(await output(3), /^CoreStats\(steps=\d+/);
  await page.screenshot({ path: join(process.env["WHERRY_SHOTS"] ?? "", "notebook.png") });
});

it("shows text as it is written, and stops", async () => {
  const release = await holdSteps(page, 30);
  const number = await run(
    'story = [{"role": "user", "content": "Tell me a story."}]\n' +
      "for chunk in engine.chat.completions.create(messages=story, stream=True, ignore_eos=True, max_tokens=900):\n" +
      '    print(chunk.choices[0].delta.content or "", end="", flush=True)',
  );
  const text = cell(number).locator(".output .text");
  await page.waitForFunction(
    () =>
      (document.querySelector(".cell:last-of-type .output .text")?.textContent ?? "").length > 20,
    undefined,
    { timeout: PATIENCE },
  );
  assert.equal(await cell(number).getAttribute("data-state"), "running");
  await page.click("#stop");
  await release();
  assert.match(await output(number), /Stopped\.$/);
  const length = (await text.innerText()).length;
  assert.equal(await output(await run("engine.stats().running")), "0");
  assert.equal((await text.innerText()).length, length);
});

it("holds an answer to a grammar, whose library it loads then", async () => {
  const said = await output(
    await run(
      'format = {"type": "json_schema", "json_schema": {"schema": {"enum": ["yes", "no"]}}}\n' +
        'engine.completions.create(prompt="Say yes:", response_format=format).choices[0].text',
    ),
  );
  assert.match(said, /^'"(yes|no)"'$/);
});

it("tells an error with the lines of the cell alone, and goes on", async () => {
  const said = await output(await run('engine.completions.create(prompt="a", temperature=-1)'));
  assert.match(said, /RequestError: .*temperature/);
  assert.equal(await output(await run("1 + 1")), "2");
});

it("starts again", async () => {
  await page.evaluate(() => delete document.body.dataset["ready"]);
  await page.click("#restart");
  await page.waitForSelector("body[data-ready]", { timeout: PATIENCE });
  assert.match(await output(await run("engine")), /NameError/);
});

it("is open to all", async () => {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { axe: tool } = globalThis as unknown as { axe: typeof axe };
    return (await tool.run()).violations.map(({ id }) => id);
  });
  assert.deepEqual(violations, []);
  assert.deepEqual(wrong, []);
});
