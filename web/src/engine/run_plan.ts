import type { Delta } from "../answer/choice.js";
import { Generation } from "../answer/generation.js";
import type { CoreEvent, CoreMask } from "../core/core.js";
import { AbortedError, throwIfAborted } from "../errors.js";
import type { Plan } from "../request/plan.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { EventQueue } from "./event_queue.js";
import type { ModelRunner } from "./model_runner.js";

/** A request under way. */
export interface Running {
  readonly generation: Generation;
  /** Its pieces, until every choice has ended. */
  readonly deltas: AsyncGenerator<Delta, void, undefined>;
  /** End what of it still runs; may be called more than once. */
  readonly close: () => void;
}

/**
 * Submit a request.
 *
 * @param masks what each choice is held to; empty if nothing is.
 * @throws RequestError, OutOfMemoryError, DeviceLostError, AbortedError
 */
export function runPlan(
  plan: Plan,
  tokenizer: Tokenizer,
  runner: ModelRunner,
  masks: readonly CoreMask[],
  signal: AbortSignal | undefined,
): Running {
  throwIfAborted(signal);
  const queue = new EventQueue<readonly [number, CoreEvent]>();
  const ids: number[] = [];
  const end = (): void => {
    for (const id of ids) runner.abort(id);
  };
  try {
    for (const [index, params] of plan.params.entries()) {
      const sink = {
        event: (event: CoreEvent): void => {
          queue.push([index, event]);
        },
        fail: (error: Error): void => {
          queue.fail(error);
        },
      };
      ids.push(runner.add(plan.prompt, params, sink, masks[index]));
    }
  } catch (error) {
    end();
    throw error;
  }
  const aborted = (): void => {
    end();
    queue.fail(new AbortedError(undefined, { cause: signal?.reason }));
  };
  signal?.addEventListener("abort", aborted, { once: true });
  const generation = new Generation(plan, tokenizer);
  const abort = (index: number): void => {
    runner.abort(ids[index] ?? 0);
  };
  const close = (): void => {
    signal?.removeEventListener("abort", aborted);
    end();
  };
  return { generation, deltas: deltasOf(generation, queue, abort), close };
}

async function* deltasOf(
  generation: Generation,
  queue: EventQueue<readonly [number, CoreEvent]>,
  abort: (index: number) => void,
): AsyncGenerator<Delta, void, undefined> {
  while (!generation.done) {
    for (const [index, event] of await queue.next()) {
      const delta = generation.push(index, event);
      if (!delta) continue;
      if (delta.mustAbort) abort(index);
      if (delta.text || delta.finish || delta.logprobs.length > 0) yield delta;
    }
  }
}
