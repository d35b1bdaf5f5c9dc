/**
 * Drives the demo page in tests, as a person uses it. WHERRY_SHOTS is a folder for screenshots of
 * it.
 */
import { join } from "node:path";

import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";

import { violations } from "./shown.js";

export const WIDE = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };
const SHOTS = process.env["WHERRY_SHOTS"] ?? "";
const PATIENCE = 120_000; // milliseconds that a test waits at most, because the machine may be busy

export class DemoPage {
  /** Errors that the page has reported. */
  readonly wrong: string[] = [];
  readonly context: BrowserContext;
  readonly page: Page;

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => this.wrong.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") this.wrong.push(message.text());
    });
  }

  static async open(
    browser: Browser,
    url: string,
    options: BrowserContextOptions = {},
  ): Promise<DemoPage> {
    const context = await browser.newContext({ viewport: WIDE, colorScheme: "light", ...options });
    await context.addInitScript(hear);
    const page = new DemoPage(context, await context.newPage());
    await page.page.goto(url);
    return page;
  }

  /** Open another tab of the same person. */
  static async beside({ context }: DemoPage, url: string): Promise<DemoPage> {
    const page = new DemoPage(context, await context.newPage());
    await page.page.goto(url);
    return page;
  }

  async ready(): Promise<void> {
    await this.page.waitForSelector("#model-dot.ready, #model-dot.failed");
    const { page } = this;
    if ((await page.locator("#model-dot.failed").count()) === 0) return;
    throw new Error(await page.locator(".failure").innerText());
  }

  /** Type a question, press Enter, and wait for the end of the answer; return its text. */
  async ask(text: string): Promise<string> {
    const { page } = this;
    const before = await page.locator(".foot").count();
    await page.fill("#text", text);
    await page.press("#text", "Enter");
    const more = (count: number): boolean => document.querySelectorAll(".foot").length > count;
    await page.waitForFunction(more, before);
    return page.locator("article .body").last().innerText();
  }

  /** Type a question, press Enter, and wait until some characters of the answer are shown. */
  async begin(text: string, characters: number): Promise<void> {
    const { page } = this;
    await page.fill("#text", text);
    await page.press("#text", "Enter");
    await page.waitForFunction((least) => {
      const last = document.querySelector("article:last-of-type .body");
      return (last?.textContent.length ?? 0) > least;
    }, characters);
  }

  /** Return the text below the last answer. */
  foot(): Promise<string> {
    return this.page.locator(".foot").last().innerText();
  }

  /**
   * Return the number next to a label of the chat ("speed") or of the engine ("Kernels per step").
   */
  async number(word: string): Promise<string> {
    const row = this.page.locator("dl div", { hasText: word }).locator("dd");
    return (await row.first().innerText()).trim();
  }

  /** Return the texts that the engine has sent since the page was opened, one for each answer. */
  heard(): Promise<string[]> {
    return this.page.evaluate(() => [...(globalThis as unknown as Hearing).heard.values()]);
  }

  async shot(name: string): Promise<void> {
    const path = join(SHOTS, `${name}.png`);
    await this.page.screenshot({ path, animations: "disabled" });
  }

  /** Return the accessibility violations of the page. */
  violations(): Promise<string[]> {
    return violations(this.page);
  }
}

interface Hearing {
  heard: Map<number, string>;
}

/** Collect the texts of answers by call, as the engine's worker sends them to the page. */
function hear(): void {
  const heard = new Map<number, string>();
  (globalThis as unknown as Hearing).heard = heard;
  interface Chunk {
    readonly choices?: readonly { readonly delta?: { readonly content?: string } }[];
  }
  globalThis.MessageChannel = class extends MessageChannel {
    constructor() {
      super();
      this.port1.addEventListener("message", (event: MessageEvent) => {
        const { id, chunk } = event.data as { id: number; chunk?: Chunk };
        if (!chunk?.choices) return;
        heard.set(id, (heard.get(id) ?? "") + (chunk.choices[0]?.delta?.content ?? ""));
      });
    }
  };
}
