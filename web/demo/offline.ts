/**
 * The service worker that lets the page open without a network. The server's files take precedence;
 * the stored ones are used if no server answers, and they are always complete and of one version.
 * The engine stores the models itself.
 */
declare const FILES: readonly string[]; // files of the page, which scripts/bundle_page.js inserts
declare const VERSION: string;

/** The part of a service worker's global scope that this file uses. */
interface Scope {
  addEventListener(type: "install" | "activate", heard: (event: Lasting) => void): void;
  addEventListener(type: "fetch", heard: (event: Fetching) => void): void;
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
}
interface Lasting {
  waitUntil(done: Promise<unknown>): void;
}
interface Fetching {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

const scope = globalThis as unknown as Scope;
// prefix of this page's caches, because the engine has caches of its own
const PREFIX = "wherry.page.";
const CACHE = PREFIX + VERSION;
const MODELS = `${PREFIX}models`;
const here = new URL("./", location.href);
const page = new Set(["", ...FILES].map((name) => new URL(name, here).href));
const list = new URL("models.json", here).href;

scope.addEventListener("install", (event) => {
  const keep = async (): Promise<void> => {
    const cache = await caches.open(CACHE);
    await cache.addAll([...page].map((url) => new Request(url, { cache: "no-cache" })));
    await (
      await caches.open(MODELS)
    )
      .add(new Request(list, { cache: "no-cache" }))
      .catch(() => undefined);
    await scope.skipWaiting();
  };
  event.waitUntil(keep());
});

scope.addEventListener("activate", (event) => {
  const tidy = async (): Promise<void> => {
    for (const name of await caches.keys())
      if (name.startsWith(PREFIX) && name !== CACHE && name !== MODELS) await caches.delete(name);
    await scope.clients.claim();
  };
  event.waitUntil(tidy());
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = request.url.replace(/[?#].*/, "");
  if (request.method !== "GET" || (url !== list && !page.has(url))) return;
  event.respondWith(answer(request, url));
});

async function answer(request: Request, url: string): Promise<Response> {
  const cache = await caches.open(url === list ? MODELS : CACHE);
  try {
    const response = await fetch(request);
    if (url === list && response.ok) await cache.put(url, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(url, { ignoreVary: true });
    if (kept) return kept;
    throw error;
  }
}
