/** OpenAI's HTTP API without a server: the page's own engine answers requests. */
import type { Engine } from "../engine/engine.js";
import { ApiError, errorResponse } from "./errors.js";
import { type Handler, routesOf } from "./routes.js";

/** The type of the global `fetch`. */
export type Fetch = (input: RequestInfo | URL, init?: RequestInit) => Promise<Response>;

/** Options of {@link createFetch}. */
export interface FetchOptions {
  /** The beginning of all paths; default: everything up to the first "/v1", on any host. */
  readonly base?: string | undefined;
}

/**
 * Create a `fetch` that responds as `wherry serve` does, with the same statuses, errors and
 * streams, to `/v1/chat/completions`, `/v1/completions`, `/v1/embeddings`, `/v1/rerank`,
 * `/v1/classify`, `/v1/models` and `/v1/models/NAME`. It makes no network requests.
 *
 * ```ts
 * const client = new OpenAI({ fetch: createFetch(engine), apiKey: "-", dangerouslyAllowBrowser: true });
 * ```
 *
 * @param engine the engine that answers, or a promise of one, for which requests wait.
 * @returns the function. Its promise rejects only for invalid URLs and, with the signal's reason,
 *   for aborted requests.
 */
export function createFetch(
  engine: Engine | PromiseLike<Engine>,
  { base }: FetchOptions = {},
): Fetch {
  const created = Math.floor(Date.now() / 1000);
  return async (input, init) => {
    const request = new Request(input, init);
    // Prefer the given signal: in Node, the signal of the Request may not follow it.
    const signal = init?.signal ?? request.signal;
    try {
      signal.throwIfAborted();
      const handler = handlerOf(request, base);
      return await handler({ engine: await engine, request, signal, created });
    } catch (error) {
      signal.throwIfAborted();
      return errorResponse(error);
    }
  };
}

/**
 * Return the handler of a request.
 *
 * @throws ApiError if the path does not exist, or does not support the method.
 */
function handlerOf({ url, method }: Request, base: string | undefined): Handler {
  const { pathname } = new URL(url);
  const path = pathOf(pathname, base);
  const { routes, known } = routesOf(path);
  const handler = routes[method];
  if (handler) return handler;
  const allowed = Object.keys(routes).join(", ");
  if (allowed !== "") throw ApiError.wrongMethod(`${method} ${pathname}`, allowed);
  throw ApiError.unknownPath(`${method} ${pathname}`, known);
}

/** Return the path without the base, such as "/models" for "/v1/models"; "" if the base differs. */
function pathOf(pathname: string, base: string | undefined): string {
  if (base === undefined) return pathname.replace(/^.*?\/v1(?=\/)/, "");
  const folder = base.replace(/\/$/, "");
  return pathname.startsWith(`${folder}/`) ? pathname.slice(folder.length) : "";
}
