import { QuotaError } from "../errors.js";
import { platform } from "../platform.js";

/** What the browser keeps for this origin, in bytes; undefined where it does not say. */
export interface StorageRoom {
  readonly used: number | undefined;
  readonly available: number | undefined;
}

/** What is used, and what may still be written. */
export async function storageRoom(): Promise<StorageRoom> {
  const { usage, quota } = (await platform.navigator?.storage?.estimate()) ?? {};
  const available = quota === undefined ? undefined : Math.max(0, quota - (usage ?? 0));
  return { used: usage, available };
}

/**
 * Refuse a download that will not fit, before its first byte.
 *
 * @param needed bytes that are to be written.
 * @throws QuotaError with the bytes that are missing.
 */
export async function checkRoom(needed: number): Promise<void> {
  const { available } = await storageRoom();
  if (available !== undefined && needed > available) throw quotaError(needed, available);
}

/**
 * The error of a failed write: a QuotaError if that was the reason, else the error itself. An estimate
 * that says there is room is not repeated: it is wrong, or the disk is full.
 */
export async function quotaExceeded(error: unknown, needed: number): Promise<unknown> {
  if (!(error instanceof DOMException) || error.name !== "QuotaExceededError") return error;
  const { available = needed } = await storageRoom();
  return quotaError(needed, available < needed ? available : undefined, error);
}

function quotaError(needed: number, available: number | undefined, cause?: unknown): QuotaError {
  const room =
    available === undefined
      ? ", more than this browser or the disk takes"
      : `, of which this browser keeps ${amount(available)} more for this site: ` +
        `${amount(needed - available)} are missing`;
  return new QuotaError(
    needed,
    available,
    `${amount(needed)} are to be kept${room}. Remove other models or free space on the disk.`,
    { cause },
  );
}

function amount(bytes: number): string {
  if (bytes < 2 ** 20) return `${Math.ceil(bytes / 2 ** 10)} KiB`;
  return `${(bytes / 2 ** 20).toFixed(bytes < 100 * 2 ** 20 ? 1 : 0)} MiB`;
}
