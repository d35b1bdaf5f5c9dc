import type { Engine } from "../engine/engine.js";
import type { LoadProgress } from "../engine/options.js";
import { MLCEngine } from "../engine/mlc_engine.js";
import { WorkerError } from "../errors.js";
import {
  ALIVE,
  type AnswerMessage,
  type CallMessage,
  CONNECT,
  NO_CALL,
  portable,
} from "./messages.js";

/** The part of a worker's global scope that all kinds of workers have. */
type Scope = Pick<EventTarget, "addEventListener">;

/**
 * Let pages that call `connect` use this worker's engine. Works in a Worker, a SharedWorker and a
 * Service Worker:
 *
 * ```ts
 * import { serve } from "wherry/worker";
 * serve();
 * ```
 *
 * @param engine the engine to serve; default: a new one without models.
 */
export function serve(engine: Engine = new MLCEngine(), scope: Scope = globalThis): void {
  const heard = (event: Event): void => {
    const { data, ports } = event as MessageEvent<unknown>;
    if (data === CONNECT && ports[0]) attach(ports[0], engine);
    if (data === CONNECT || data === ALIVE) keepAlive(event);
  };
  scope.addEventListener("message", heard);
  scope.addEventListener("connect", (event) => {
    const [port] = (event as MessageEvent).ports; // a SharedWorker's connect event carries the port
    port?.addEventListener("message", heard);
    port?.start();
  });
}

/**
 * Keep a service worker running: browsers stop one to which nothing has happened for about 30 s.
 */
function keepAlive(event: Event): void {
  const { waitUntil } = event as { waitUntil?: (done: Promise<void>) => void };
  waitUntil?.call(event, new Promise((resolve) => setTimeout(resolve, 15_000)));
}

/** Answer the messages that arrive through a port. */
function attach(port: MessagePort, engine: Engine): void {
  const running = new Map<number, AbortController>();
  port.addEventListener("message", ({ data }: MessageEvent<CallMessage>) => {
    if (data.call === "abort") {
      running.get(data.id)?.abort();
      return;
    }
    const controller = new AbortController();
    running.set(data.id, controller);
    const send = (answer: Answer): void => {
      port.postMessage({ id: data.id, ...answer });
    };
    answered(data, engine, controller.signal, send)
      .then(
        (result) => {
          send({ result });
        },
        (error: unknown) => {
          send({ error: portable(error) });
        },
      )
      .finally(() => running.delete(data.id));
  });
  port.addEventListener("close", () => {
    for (const controller of running.values()) controller.abort(); // the page has disconnected
  });
  port.addEventListener("messageerror", () => {
    const error = new WorkerError("The worker could not read a message.");
    port.postMessage({ id: NO_CALL, error: portable(error) });
  });
  port.start();
  port.postMessage({ id: NO_CALL, ready: true });
}

type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;
type Answer = WithoutId<AnswerMessage>;

async function answered(
  message: CallMessage,
  engine: Engine,
  signal: AbortSignal,
  send: (answer: Answer) => void,
): Promise<unknown> {
  switch (message.call) {
    case "chat":
      return streamed(await engine.chat.completions.create(message.request, { signal }), send);
    case "completion":
      return streamed(await engine.completions.create(message.request, { signal }), send);
    case "embedding":
      return engine.embeddings.create(message.request, { signal });
    case "rerank":
      return engine.rerank(message.request, { signal });
    case "classify":
      return engine.classify(message.request, { signal });
    case "load": {
      const progress = newestOnly((latest) => {
        send({ progress: latest });
      });
      return engine.load(message.source, { ...message.options, signal, progress });
    }
    case "models":
      return engine.models();
    case "stats":
      return engine.stats(message.model);
    case "unload":
      return engine.unload(message.model);
    case "dispose":
      return engine.dispose();
    case "abort":
      return undefined; // the message was handled before
  }
}

/** Send the chunks of a stream as they come; return any other answer as the result. */
async function streamed(answer: object, send: (answer: Answer) => void): Promise<unknown> {
  if (!(Symbol.asyncIterator in answer)) return answer;
  send({ started: true });
  for await (const chunk of answer as AsyncIterable<unknown>) send({ chunk });
  return undefined;
}

const PROGRESS_MS = 50;

/**
 * Limit progress messages: pass on the first and the last value of each phase, and one every 50 ms
 * between.
 */
function newestOnly(pass: (value: LoadProgress) => void): (value: LoadProgress) => void {
  let phase = "";
  let at = -Infinity;
  return (value) => {
    const now = performance.now();
    if (value.phase === phase && value.done < value.total && now - at < PROGRESS_MS) return;
    phase = value.phase;
    at = now;
    pass(value);
  };
}
