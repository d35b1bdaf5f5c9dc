import { AbortedError } from "../errors.js";
import { platform } from "../platform.js";

/**
 * Run work that must not run at the same time in other pages or workers of this site. Pages on
 * http:// have no such locks; there the work runs at once.
 *
 * @throws AbortedError if the signal is aborted while the work waits.
 */
export async function alone<T>(
  name: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const locks = platform.navigator?.locks;
  if (!locks) return work();
  const options = signal ? { signal } : {};
  try {
    return await locks.request(name, options, work);
  } catch (error) {
    if (signal?.aborted && error === signal.reason)
      throw new AbortedError(undefined, { cause: signal.reason });
    throw error;
  }
}
