import { QuotaError } from "../errors.js";
import { platform } from "../platform.js";

/** The storage of this origin in bytes; undefined where the browser does not tell. */
export interface StorageRoom {
  readonly used: number | undefined;
  readonly available: number | undefined;
}

/** Return the used and the available storage. */
export async function storageRoom(): Promise<StorageRoom> {
  const { usage, quota } = (await platform.navigator?.storage?.estimate()) ?? {};
  const available = quota === undefined ? undefined : Math.max(0, quota - (usage ?? 0));
  return { used: usage, available };
}

/**
 * Refuse a download that will not fit, before its first byte.
 *
 * @param needed number of bytes to be stored.
 * @throws QuotaError with the number of missing bytes.
 */
export async function checkRoom(needed: number): Promise<void> {
  const { available } = await storageRoom();
  if (available !== undefined && needed > available) throw quotaError(needed, available);
}

/**
 * Convert the error of a failed write: to a QuotaError if the quota was the reason. If the
 * browser's estimate claims that there is room, the QuotaError does not repeat it, because the disk
 * is full or the estimate is wrong.
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
