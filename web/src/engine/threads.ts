import { platform } from "../platform.js";

const MOST = 8; // maximum number of threads: they share one memory bandwidth

/**
 * The default number of CPU threads: half of the processors, because the other half are mostly
 * hyperthreads of the same cores, or slow cores; of two processors both.
 *
 * @param processors the browser's count of processors; undefined if it has none.
 */
export function defaultThreads(processors = platform.navigator?.hardwareConcurrency ?? 1): number {
  if (processors <= 2) return processors;
  return Math.min(Math.ceil(processors / 2), MOST);
}
