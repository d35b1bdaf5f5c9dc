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

/** What a worker's global scope offers, of whatever kind it is. */
type Scope = Pick<EventTarget, "addEventListener">;

/**
 * Let pages use this worker's engine; they call `connect`. Works in a Worker, a SharedWorker and a
 * Service Worker:
 *
 * ```ts
 * import { serve } from "wherry/worker";
 * serve();
 * ```
 *
 * @param engine what is served; default: one of its own, without models.
 */
export function serve(engine: Engine = new MLCEngine(), scope: Scope = globalThis): void {
  const heard = (event: Event): void => {
    const { data, ports } = event as MessageEvent<unknown>;
    if (data === CONNECT && ports[0]) attach(ports[0], engine);
    if (data === CONNECT || data === ALIVE) keepAlive(event);
  };
  scope.addEventListener("message", heard);
  scope.addEventListener("connect", (event) => {
    const [port] = (event as MessageEvent).ports; // of a SharedWorker
    port?.addEventListener("message", heard);
    port?.start();
  });
}

/** A service worker may be ended when nothing has happened to it for some 30 s. */
function keepAlive(event: Event): void {
  const { waitUntil } = event as { waitUntil?: (done: Promise<void>) => void };
  waitUntil?.call(event, new Promise((resolve) => setTimeout(resolve, 15_000)));
}

/** Answer what comes through a port. */
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
    for (const controller of running.values()) controller.abort(); // the page has gone
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
      return undefined; // dealt with before
  }
}

/** A stream's pieces are sent as they come; anything else is the result. */
async function streamed(answer: object, send: (answer: Answer) => void): Promise<unknown> {
  if (!(Symbol.asyncIterator in answer)) return answer;
  send({ started: true });
  for await (const chunk of answer as AsyncIterable<unknown>) send({ chunk });
  return undefined;
}

const PROGRESS_MS = 50;

/** Passes on the first value of each phase, the last, and between them one each 50 ms. */
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
