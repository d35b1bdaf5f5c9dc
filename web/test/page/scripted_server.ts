/**
 * A server that says to the server's chat page what a test tells it. WHERRY_PAGE is the page,
 * WHERRY_POLICY its Content-Security-Policy.
 */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

import type { BrowserContext, Page } from "playwright-core";

const HTML = readFileSync(process.env["WHERRY_PAGE"] ?? "");
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

/** A model of /v1/models. */
export interface Listed {
  id: string;
  root: string;
  input_modalities?: string[];
}

/** A chat request, as far as tests look at it. */
export interface ChatRequest {
  model: string;
  messages: { role: string; content: unknown }[];
}

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

export class ScriptedServer {
  /** Whether the model is loaded. */
  loaded = true;
  models: Listed[] = [{ id: "small", root: "small" }];
  /** The error of the next chat request, if it shall fail. */
  failure = "";
  /** The chat requests so far. */
  readonly requests: ChatRequest[] = [];
  /** Errors that pages reported. */
  readonly wrong: string[] = [];
  #running: ServerResponse | undefined; // the answer that is being sent
  readonly #server = createServer((request, response) => void this.#respond(request, response));

  static async start(): Promise<ScriptedServer> {
    const server = new ScriptedServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Open the page. */
  async open(context: BrowserContext): Promise<Page> {
    const opened = await context.newPage();
    opened.setDefaultTimeout(20_000);
    opened.on("pageerror", (error) => this.wrong.push(error.message));
    opened.on("console", (message) => {
      if (message.type() === "error") this.wrong.push(message.text());
    });
    await opened.goto(this.url);
    await opened.waitForFunction(() => document.querySelector("#model option"));
    return opened;
  }

  /** Send a piece of the running answer. */
  say(content: string): void {
    this.#running?.write(event({ choices: [{ delta: { content }, finish_reason: null }] }));
  }

  end(): void {
    this.#running?.write(event({ choices: [{ delta: {}, finish_reason: "stop" }] }));
    this.#running?.write(event({ choices: [], usage: { completion_tokens: 7 } }));
    this.#running?.end("data: [DONE]\n\n");
    this.#running = undefined;
  }

  /** Wait until the page has sent a request. */
  async arrived(): Promise<void> {
    while (!this.#running) await new Promise((soon) => setTimeout(soon, 5));
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const json = (value: object, status = 200): void => {
      const headers = { "Content-Type": "application/json" };
      response.writeHead(status, headers).end(JSON.stringify(value));
    };
    if (request.url === "/") {
      const headers = { "Content-Security-Policy": process.env["WHERRY_POLICY"] ?? "" };
      response.writeHead(200, { "Content-Type": "text/html", ...headers }).end(HTML);
    } else if (request.url === "/v1/models") json({ data: this.models });
    else if (request.url === "/stats") json(this.loaded ? STATS : { ...STATS, models: {} });
    else if (request.url === "/v1/chat/completions") {
      this.requests.push(JSON.parse(await text(request)) as ChatRequest);
      if (this.failure) {
        json({ error: { message: this.failure } }, 400);
        this.failure = "";
        return;
      }
      this.#running = response.on("close", () => {
        if (this.#running === response) this.#running = undefined;
      });
      response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
    } else response.writeHead(404).end();
  }
}
