import type { Engine } from "../engine/engine.js";
import { createFetch } from "../http/fetch.js";

/** What is needed of a service worker's scope. */
interface Scope {
  readonly location: { readonly href: string };
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "activate", heard: (event: Lasting) => void): void;
  addEventListener(type: "fetch", heard: (event: Fetched) => void): void;
}
interface Lasting {
  waitUntil(done: Promise<unknown>): void;
}
interface Fetched extends Lasting {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

/** Options of {@link serveFetch}. */
export interface ServeFetchOptions {
  /** What is answered, from the worker's script on; default: "v1/" next to it. */
  readonly path?: string;
}

/**
 * Let a service worker answer OpenAI's requests of its pages, as `createFetch` does, from the first
 * visit on. Everything else goes to the network as before.
 *
 * ```ts
 * const engine = new MLCEngine();
 * serveFetch(engine.load("models/demo/").then(() => engine));
 * ```
 *
 * @param engine what answers; requests wait for a promise. A browser ends an idle service worker,
 *   and starts it anew with the next request: a promise that loads a model is right at both times.
 */
export function serveFetch(
  engine: Engine | PromiseLike<Engine>,
  { path = "v1/" }: ServeFetchOptions = {},
  scope = globalThis as unknown as Scope,
): void {
  const { href, pathname } = new URL(path.replace(/\/?$/, "/"), scope.location.href);
  const fetch = createFetch(engine, { base: pathname });
  scope.addEventListener("activate", (event) => {
    event.waitUntil(scope.clients.claim());
  });
  scope.addEventListener("fetch", (event) => {
    const { request } = event;
    if (!request.url.startsWith(href)) return;
    const answer = fetch(request).then((response) => lasting(response, event));
    event.respondWith(answer);
  });
}

/** The same response; the browser does not end the worker before its last byte. */
function lasting(response: Response, event: Lasting): Response {
  if (!response.body) return response;
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  // A reader that stops, or an aborted request, ends it with an error that its reader gets.
  event.waitUntil(response.body.pipeTo(writable).catch(() => undefined));
  return new Response(readable, response);
}
