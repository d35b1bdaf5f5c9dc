import type { Endpoint, Engine, RequestOptions } from "../engine/engine.js";
import type { ModelInfo } from "../engine/options.js";
import { RequestError } from "../errors.js";
import { isObject } from "../json_object.js";
import { type RequestKind, unknownNames } from "../request/names.js";
import type { ClassifyRequest, EmbeddingRequest, RerankRequest } from "../request/types.js";
import { eventsOf } from "./events.js";

/** The arguments of a handler. */
export interface Call {
  readonly engine: Engine;
  readonly request: Request;
  /** Aborts the request. */
  readonly signal: AbortSignal;
  /** The creation time that responses state for models, in seconds since 1970. */
  readonly created: number;
}
export type Handler = (call: Call) => Promise<Response>;
/** The handlers of one path, by HTTP method. */
type Routes = Readonly<Partial<Record<string, Handler>>>;

const ROUTES: Readonly<Partial<Record<string, Routes>>> = {
  "/models": { GET: models },
  "/chat/completions": {
    POST: (call) => answer("chat", call.engine.chat.completions, call),
  },
  "/completions": { POST: (call) => answer("completion", call.engine.completions, call) },
  "/embeddings": {
    POST: (call) =>
      numbers("embedding", call, ({ embeddings }, body, options) =>
        embeddings.create(body as EmbeddingRequest, options),
      ),
  },
  "/rerank": {
    POST: (call) =>
      numbers("rerank", call, (engine, body, options) => {
        const { truncate, ...request } = body as RerankRequest;
        // texts that are too long are cut unless the request says otherwise, as in `wherry serve`
        return engine.rerank({ ...request, truncate: truncate ?? true }, options);
      }),
  },
  "/classify": {
    POST: (call) =>
      numbers("classify", call, (engine, body, options) =>
        engine.classify(body as ClassifyRequest, options),
      ),
  },
};
const MODEL = "/models/";
const KNOWN = [...Object.keys(ROUTES), `${MODEL}NAME`];
/** The response header that lists ignored fields of the request, as in `wherry serve`. */
const IGNORED = "X-Wherry-Ignored";

/** Return the handlers of a path without the base, and the list of all paths. */
export function routesOf(path: string): { routes: Routes; known: readonly string[] } {
  const named = path.startsWith(MODEL) && path !== MODEL;
  const routes = named ? { GET: modelOf(path.slice(MODEL.length)) } : (ROUTES[path] ?? {});
  return { routes, known: KNOWN };
}

async function models({ engine, created }: Call): Promise<Response> {
  const data = (await engine.models()).map((model) => described(model, created));
  return Response.json({ object: "list", data });
}

/** Return the handler for one model, whose name is URL-encoded. */
function modelOf(encoded: string): Handler {
  return async ({ engine, created }) => {
    const name = decoded(encoded);
    const all = await engine.models();
    const match = all.find((model) => model.name === name);
    if (match) return Response.json(described(match, created));
    const names = all.map((model) => model.name).join(", ") || "none";
    const message = `There is no model ${name}. Loaded are: ${names}.`;
    throw new RequestError(message, { param: "model", reason: "model_not_found" });
  };
}

/** Decode a name from a URL; return a name with an invalid escape, such as "100%", unchanged. */
function decoded(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** Return a model in the format of /v1/models. */
function described({ name, context }: ModelInfo, created: number): object {
  const more = { max_model_len: context, root: name };
  return { id: name, object: "model", created, owned_by: "wherry", ...more };
}

/** Run a completion; respond with a stream if the request has `stream`, else with one object. */
async function answer<Body, Complete extends object, Chunk>(
  kind: "chat" | "completion",
  endpoint: Endpoint<Body, Complete, Chunk>,
  { request, signal }: Call,
): Promise<Response> {
  const { body, headers } = await read(kind, request);
  const completion = await endpoint.create(body as Body, { signal });
  if (Symbol.asyncIterator in completion) return eventsOf(completion, signal, headers);
  return Response.json(completion, headers && { headers });
}

/** Run a request for numbers. */
async function numbers(
  kind: RequestKind,
  { engine, request, signal }: Call,
  run: (engine: Engine, body: object, options: RequestOptions) => Promise<object>,
): Promise<Response> {
  const { body, headers } = await read(kind, request);
  return Response.json(await run(engine, body, { signal }), headers && { headers });
}

/** Read the fields of a request that requests of this kind have, and the header with the others. */
async function read(
  kind: RequestKind,
  request: Request,
): Promise<{ body: object; headers: Readonly<Record<string, string>> | undefined }> {
  const body = await bodyOf(request);
  const ignored = unknownNames(kind, body);
  const sent = Object.entries(body).filter(([name]) => !ignored.includes(name));
  const headers = ignored.length > 0 ? { [IGNORED]: printable(ignored) } : undefined;
  return { body: Object.fromEntries(sent), headers };
}

/** Return names as the value of a header: printable ASCII, at most 1024 characters. */
function printable(names: readonly string[]): string {
  const all = [...names].sort().map((name) => name.slice(0, 100));
  return all
    .join(", ")
    .replace(/[^ -~]/g, "?")
    .slice(0, 1024);
}

/**
 * Parse the body of a request.
 *
 * @throws RequestError if the body is not a JSON object.
 */
async function bodyOf(request: Request): Promise<object> {
  let body: unknown;
  try {
    body = await request.json();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new RequestError(`The body is not JSON: ${why}`, { reason: "invalid_json" });
  }
  if (!isObject(body)) throw new RequestError("The request is not a JSON object");
  return body;
}
