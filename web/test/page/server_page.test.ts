/**
 * Tests the page of Wherry's server in a browser, over a scripted server. WHERRY_SHOTS is a folder
 * for screenshots, CHROMIUM the browser.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";

import { launched } from "./browser.js";
import { PHONE, WIDE } from "./demo_page.js";
import { ScriptedServer } from "./scripted_server.js";
import { smallTargets, violations, visibleText } from "./shown.js";

const SHOTS = process.env["WHERRY_SHOTS"] ?? "";
const CODE =
  "Here it is:\n\n```python\ndef two():  # a number\n    return 'two', 2\n```\n\nThat is all.";
/** What a person sees of it. */
const SEEN = "Here it is: python Copy def two(): # a number return 'two', 2 That is all.";

let browser: Browser;
let context: BrowserContext;
let page: Page;
let server: ScriptedServer;

before(async () => {
  server = await ScriptedServer.start();
  browser = await launched();
  context = await browser.newContext({ viewport: WIDE, colorScheme: "light" });
  page = await server.open(context);
});
after(async () => {
  await browser.close();
  server.close();
});

async function ask(text: string): Promise<void> {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
  await server.arrived();
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
    server.say(CODE.slice(0, 40));
    server.say(CODE.slice(40));
    await page.getByText("That is all.").waitFor();
    await showsExactly(first, SEEN);
    server.end();
    await showsExactly(first, SEEN, "Copy Another answer", await note("7 tokens"));
    await page.getByRole("button", { name: "Another answer" }).click();
    await server.arrived();
    server.say("Two.");
    server.end();
    const firstNote = await note("7 tokens");
    await showsExactly(first, "Two.", "Copy Another answer", firstNote);
    await ask("And then?");
    server.say("Th");
    server.say("ree");
    await page.getByText("Three").waitFor();
    await shot("server-running");
    await page.click("#send");
    const rest = ["And then?", "Three", "Copy Another answer", await note("stopped")];
    await showsExactly(first, "Two.", "Copy", firstNote, ...rest);
  });

  it("keeps the conversation when its tab is closed", async () => {
    const before = await visibleText(page, "#numbers");
    await page.close();
    page = await server.open(context);
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
    await server.arrived();
    assert.ok(await page.locator(".mine .icon").isDisabled());
    server.say(CODE);
    server.end();
    await showsExactly("How many legs?", SEEN, "Copy Another answer", await note("7 tokens"));
  });

  it("says that a message is queued while the model loads", async () => {
    server.loaded = false;
    await page.getByRole("button", { name: "Another answer" }).click();
    await page.getByText("Queued until the model is loaded").waitFor();
    await showsExactly("How many legs?", "Queued until the model is loaded");
    await shot("server-queued");
    server.loaded = true;
    server.say(CODE);
    await page.getByText("That is all.").waitFor();
    await showsExactly("How many legs?", SEEN);
    server.end();
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
    assert.equal((JSON.parse(data ?? "") as { start_url: string }).start_url, server.url);
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    const ids = installabilityErrors.map(({ errorId }) => errorId);
    assert.deepEqual(
      ids.filter((id) => id !== "in-incognito"),
      [],
    );
    await page.close();
    const phone = { viewport: PHONE, hasTouch: true, isMobile: true };
    context = await browser.newContext(phone);
    page = await server.open(context);
    assert.deepEqual(await smallTargets(page), []);
    await ask("Some code?");
    server.say(CODE);
    server.end();
    await note("7 tokens");
    await shot("server-fingers");
    assert.deepEqual(await smallTargets(page), []);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.tap("#tune");
    assert.deepEqual(await smallTargets(page), []);
  });

  it("has no errors of its own", () => {
    assert.deepEqual(server.wrong, []);
  });
});
