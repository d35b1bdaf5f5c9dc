import type { Page, Worker } from "playwright-core";

/**
 * Let the engine of a page's worker run this number of further steps and then wait, so that an
 * answer lasts as long as a test needs, on any machine. (`nextTask`, which follows a step, is the
 * only sender of `undefined`.)
 *
 * @returns a function that lets the engine continue.
 */
export async function holdSteps(page: Page, steps: number): Promise<() => Promise<void>> {
  const [worker] = page.workers().filter((one) => /\/(worker|kernel)\.js$/.test(one.url()));
  if (!worker) throw new Error("the page has no worker with an engine");
  await worker.evaluate(hold, steps);
  return () => release(worker);
}

interface Gated {
  release?: () => void;
}

function hold(left: number): void {
  const { prototype } = MessagePort;
  const post = Reflect.get(prototype, "postMessage") as (...args: unknown[]) => void;
  const waiting: MessagePort[] = [];
  Reflect.set(prototype, "postMessage", function (this: MessagePort, ...args: unknown[]) {
    if (args[0] !== undefined || left-- > 0) post.apply(this, args);
    else waiting.push(this);
  });
  (globalThis as Gated).release = () => {
    Reflect.set(prototype, "postMessage", post);
    for (const port of waiting) post.call(port, undefined);
  };
}

function release(worker: Worker): Promise<void> {
  return worker.evaluate(() => (globalThis as Gated).release?.());
}
