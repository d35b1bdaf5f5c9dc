/** OpenAI's HTTP interface without a server: requests are answered by the engine of the page. */
import type { Engine } from "../engine/engine.js";
import { ApiError, errorResponse } from "./errors.js";
import { type Handler, routesOf } from "./routes.js";

/** As the global `fetch`. */
export type Fetch = (input: RequestInfo | URL, init?: RequestInit) => Promise<Response>;

/** Options of {@link createFetch}. */
export interface FetchOptions {
  /** What paths begin with; default: all up to the first "/v1/", of any server. */
  readonly base?: string | undefined;
}

/**
 * A `fetch` that answers as `wherry serve` does, with its statuses, errors and streams:
 * `/v1/chat/completions`, `/v1/completions`, `/v1/models` and `/v1/models/NAME`. It sends nothing.
 *
 * ```ts
 * const client = new OpenAI({ fetch: createFetch(engine), apiKey: "-", dangerouslyAllowBrowser: true });
 * ```
 *
 * @param engine what answers; where it is a promise (of an engine whose models are being loaded),
 *   requests wait for it.
 * @returns rejects as `fetch` does: with the signal's reason where the request was aborted.
 */
export function createFetch(
  engine: Engine | PromiseLike<Engine>,
  { base }: FetchOptions = {},
): Fetch {
  const created = Math.floor(Date.now() / 1000);
  return async (input, init) => {
    const request = new Request(input, init);
    // Not the request's own where there is another: Node's forgets to follow it with the request.
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

/** @throws ApiError: there is no such path, or it takes another method. */
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

/** The path below the base: "/models" of "/v1/models". */
function pathOf(pathname: string, base: string | undefined): string {
  if (base === undefined) return pathname.replace(/^.*?\/v1(?=\/)/, "");
  const folder = base.replace(/\/$/, "");
  return pathname.startsWith(`${folder}/`) ? pathname.slice(folder.length) : "";
}
