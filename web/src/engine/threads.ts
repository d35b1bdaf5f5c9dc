import { platform } from "../platform.js";

const MOST = 8; // all of them read one memory

/**
 * The default number of CPU threads: half of the processors, the other half being mostly
 * second faces of the same cores, or slow ones; both of two.
 *
 * @param processors as the browser counts them; undefined where it does not.
 */
export function defaultThreads(processors = platform.navigator?.hardwareConcurrency ?? 1): number {
  if (processors <= 2) return processors;
  return Math.min(Math.ceil(processors / 2), MOST);
}
