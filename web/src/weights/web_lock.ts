import { AbortedError } from "../errors.js";
import { platform } from "../platform.js";

/**
 * Do something that no other page or worker of this site does meanwhile. Pages of http:// have no such
 * locks: there it is done at once.
 *
 * @throws AbortedError if the signal is aborted while it waits.
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
