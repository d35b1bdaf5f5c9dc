/**
 * Tests the page of Wherry's server in a browser, over a server that says what a test tells it.
 * WHERRY_PAGE is the page, WHERRY_POLICY its Content-Security-Policy, WHERRY_SHOTS a folder for
 * screenshots, CHROMIUM the browser.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";

import { launched } from "./browser.js";
import { PHONE, WIDE } from "./demo_page.js";
import { smallTargets, violations, visibleText } from "./shown.js";

const HTML = readFileSync(process.env["WHERRY_PAGE"] ?? "");
const SHOTS = process.env["WHERRY_SHOTS"] ?? "";
const CODE =
  "Here it is:\n\n```python\ndef two():  # a number\n    return 'two', 2\n```\n\nThat is all.";
/** What a person sees of it. */
const SEEN = "Here it is: python Copy def two(): # a number return 'two', 2 That is all.";

let browser: Browser;
let context: BrowserContext;
let page: Page;
let server: Server;
let url = "";
let loaded = true; // whether the server's model is
let running: ServerResponse | undefined; // the answer that is being sent
const wrong: string[] = [];

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** Send a piece of the running answer. */
function say(content: string): void {
  running?.write(event({ choices: [{ delta: { content }, finish_reason: null }] }));
}

function end(): void {
  running?.write(event({ choices: [{ delta: {}, finish_reason: "stop" }] }));
  running?.write(event({ choices: [], usage: { completion_tokens: 7 } }));
  running?.end("data: [DONE]\n\n");
  running = undefined;
}

const STATS = {
  status: "ok",
  models: {
    small: {
      state: "idle",
      kv_cache: { pages_total: 10, pages_free: 9 },
      tokens: { prompt: 4, cached: 2 },
      requests: { waiting: 0 },
    },
  },
};

before(async () => {
  server = createServer((request, response) => {
    const json = (value: object): void => {
      response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
    };
    if (request.url === "/") {
      const headers = { "Content-Security-Policy": process.env["WHERRY_POLICY"] ?? "" };
      response.writeHead(200, { "Content-Type": "text/html", ...headers }).end(HTML);
    } else if (request.url === "/v1/models") json({ data: [{ id: "small", root: "small" }] });
    else if (request.url === "/stats") json(loaded ? STATS : { ...STATS, models: {} });
    else if (request.url === "/v1/chat/completions") {
      running = response.on("close", () => {
        if (running === response) running = undefined;
      });
      response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  browser = await launched();
  context = await browser.newContext({ viewport: WIDE, colorScheme: "light" });
  page = await open();
});
after(async () => {
  await browser.close();
  server.closeAllConnections();
  server.close();
});

async function open(): Promise<Page> {
  const opened = await context.newPage();
  opened.setDefaultTimeout(20_000);
  opened.on("pageerror", (error) => wrong.push(error.message));
  opened.on("console", (message) => {
    if (message.type() === "error") wrong.push(message.text());
  });
  await opened.goto(url);
  await opened.waitForFunction(() => document.title !== "Wherry");
  return opened;
}

async function ask(text: string): Promise<void> {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
  await requestArrived();
}

async function requestArrived(): Promise<void> {
  while (!running) await new Promise((soon) => setTimeout(soon, 5));
}

async function shot(name: string): Promise<void> {
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: "disabled" });
}

/** Wait until the last answer has this text below it, and return it. */
async function note(words: string): Promise<string> {
  const last = page.locator(".foot span").last();
  await last.filter({ hasText: words }).waitFor();
  return last.innerText();
}

function squeezed(...texts: readonly string[]): string {
  return texts.join("").replace(/\s+/g, "");
}

/** Check that the page shows these texts, each once, and nothing else. */
async function showsExactly(...texts: readonly string[]): Promise<void> {
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn))));
  assert.equal(await visibleText(page, "#numbers"), squeezed("Wherry", ...texts));
}

describe("the page of the server", () => {
  const first = "How many?";

  it("shows each text once: running, finished, answered again, and stopped", async () => {
    assert.deepEqual(await violations(page), []);
    await shot("server-hello");
    await ask(first);
    say(CODE.slice(0, 40));
    say(CODE.slice(40));
    await page.getByText("That is all.").waitFor();
    await showsExactly(first, SEEN);
    end();
    await showsExactly(first, SEEN, "Copy Another answer", await note("7 tokens"));
    await page.getByRole("button", { name: "Another answer" }).click();
    await requestArrived();
    say("Two.");
    end();
    const firstNote = await note("7 tokens");
    await showsExactly(first, "Two.", "Copy Another answer", firstNote);
    await ask("And then?");
    say("Th");
    say("ree");
    await page.getByText("Three").waitFor();
    await shot("server-running");
    await page.click("#send");
    const rest = ["And then?", "Three", "Copy Another answer", await note("stopped")];
    await showsExactly(first, "Two.", "Copy", firstNote, ...rest);
  });

  it("keeps the conversation when its tab is closed", async () => {
    const before = await visibleText(page, "#numbers");
    await page.close();
    page = await open();
    assert.equal(await visibleText(page, "#numbers"), before);
  });

  it("edits a message", async () => {
    const before = await visibleText(page, "#numbers");
    const edit = page.getByRole("button", { name: "Edit" });
    await edit.first().click();
    assert.deepEqual(await violations(page), []);
    await shot("server-edit");
    await page.keyboard.press("Escape");
    assert.equal(await visibleText(page, "#numbers"), before);
    await page.press("#text", "ArrowUp");
    assert.equal(await page.locator(".edit textarea").inputValue(), "And then?");
    await page.getByRole("button", { name: "Cancel" }).click();
    await edit.first().click();
    await page.locator(".edit textarea").fill("How many legs?");
    await page.keyboard.press("Enter");
    await requestArrived();
    assert.ok(await page.locator(".mine .icon").isDisabled());
    say(CODE);
    end();
    await showsExactly("How many legs?", SEEN, "Copy Another answer", await note("7 tokens"));
  });

  it("says that a message is queued while the model loads", async () => {
    loaded = false;
    await page.getByRole("button", { name: "Another answer" }).click();
    await page.getByText("Queued until the model is loaded").waitFor();
    await showsExactly("How many legs?", "Queued until the model is loaded");
    await shot("server-queued");
    loaded = true;
    say(CODE);
    await page.getByText("That is all.").waitFor();
    await showsExactly("How many legs?", SEEN);
    end();
    await note("7 tokens");
  });

  it("is there for everybody: light and dark, wide and on a phone, with code in colours", async () => {
    for (const theme of ["light", "dark"]) {
      if (theme === "dark") await page.click("#theme");
      for (const [kind, size] of Object.entries({ wide: WIDE, phone: PHONE })) {
        await page.setViewportSize(size);
        assert.deepEqual(await violations(page), []);
        await shot(`server-${theme}-${kind}`);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.ok(!wider, "the page is wider than the screen");
      }
    }
    const colours = await page.evaluate(() =>
      [...document.querySelectorAll(".block code, .block code span")].map(
        (one) => getComputedStyle(one).color,
      ),
    );
    assert.equal(new Set(colours).size, 5); // plain, word, comment, text, number
  });

  it("is an app with an icon, and fits fingers", async () => {
    const session = await context.newCDPSession(page);
    const { errors, data } = await session.send("Page.getAppManifest");
    assert.deepEqual(errors, []);
    assert.equal((JSON.parse(data ?? "") as { start_url: string }).start_url, url);
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    const ids = installabilityErrors.map(({ errorId }) => errorId);
    assert.deepEqual(
      ids.filter((id) => id !== "in-incognito"),
      [],
    );
    await page.close();
    const phone = { viewport: PHONE, hasTouch: true, isMobile: true };
    context = await browser.newContext(phone);
    page = await open();
    assert.deepEqual(await smallTargets(page), []);
    await ask("Some code?");
    say(CODE);
    end();
    await note("7 tokens");
    await shot("server-fingers");
    assert.deepEqual(await smallTargets(page), []);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.tap("#tune");
    assert.deepEqual(await smallTargets(page), []);
  });

  it("has no errors of its own", () => {
    assert.deepEqual(wrong, []);
  });
});
