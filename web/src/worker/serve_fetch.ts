import type { Engine } from "../engine/engine.js";
import { createFetch } from "../http/fetch.js";

/** The part of ServiceWorkerGlobalScope that this module uses. */
interface Scope {
  readonly location: { readonly href: string };
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "activate", heard: (event: Lasting) => void): void;
  addEventListener(type: "fetch", heard: (event: Fetched) => void): void;
}
/** The part of ExtendableEvent that this module uses. */
interface Lasting {
  waitUntil(done: Promise<unknown>): void;
}
/** The part of FetchEvent that this module uses. */
interface Fetched extends Lasting {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

/** Options of {@link serveFetch}. */
export interface ServeFetchOptions {
  /** The path of the API, relative to the worker's script; default: "v1/". */
  readonly path?: string;
}

/**
 * Let a service worker answer the OpenAI API requests of its pages, as `createFetch` does. It also
 * controls pages that were open before its activation. All other requests go to the network.
 *
 * ```ts
 * const engine = new MLCEngine();
 * serveFetch(engine.load("models/demo/").then(() => engine));
 * ```
 *
 * @param engine the engine that answers, or a promise of one, for which requests wait. Browsers
 *   stop idle service workers and restart them for the next request. Pass a promise that loads the
 *   model, so that it is loaded after each start.
 * @param options the path of the API.
 * @param scope the global scope of the service worker; tests replace it.
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

/** Return the response, and keep the worker alive until its last byte has been read. */
function lasting(response: Response, event: Lasting): Response {
  if (!response.body) return response;
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  // If the client stops reading or aborts the request, the pipe fails. The client sees that error,
  // so it is ignored here.
  event.waitUntil(response.body.pipeTo(writable).catch(() => undefined));
  return new Response(readable, response);
}
