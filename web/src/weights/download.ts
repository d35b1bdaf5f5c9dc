import { AbortedError, DamagedFileError, DownloadError, throwIfAborted } from "../errors.js";

const ATTEMPTS = 5; // maximum number of failed attempts in a row
const FIRST_WAIT = 250; // milliseconds before the second attempt; doubled for each further one

const MAX_SMALL = 16 << 20; // bytes of a manifest

/** Options of downloading a folder's files. */
export interface FetchOptions {
  /** Replaces the global `fetch`, for example to send headers or credentials. */
  readonly fetch?: typeof fetch;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Download a file from an offset on; a broken connection is resumed where it broke.
 *
 * @throws DownloadError if the server refuses, or five attempts in a row bring nothing.
 * @throws AbortedError if the signal is aborted.
 */
export async function* download(
  url: string,
  size: number,
  from: number,
  options: FetchOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = from;
  let failures = 0;
  while (at < size) {
    try {
      for await (const sent of onePass(url, at, options)) {
        const piece = sent.subarray(0, size - at); // a server may send more than is listed
        failures = 0;
        at += piece.byteLength;
        yield piece;
        if (at >= size) return;
      }
      throw new DownloadError(url, `${url} ended after ${at} of ${size} bytes`);
    } catch (error) {
      throwIfAborted(options.signal);
      failures += 1;
      if (failures === ATTEMPTS || isFinal(error)) throw asDownloadError(url, error);
      await wait(FIRST_WAIT * 2 ** (failures - 1), options.signal);
    }
  }
}

/**
 * Download a small file as a whole, with a single request.
 *
 * @throws DamagedFileError if the file has more than `most` bytes; DownloadError, AbortedError
 */
export async function downloadSmall(
  url: string,
  options: FetchOptions,
  most = MAX_SMALL,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const piece of onePass(url, 0, options)) {
      size += piece.byteLength;
      if (size > most) throw new DamagedFileError(url, `${url} has more than ${most} bytes`);
      pieces.push(piece);
    }
  } catch (error) {
    throwIfAborted(options.signal);
    throw asDownloadError(url, error);
  }
  return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer());
}

/** Download a file from an offset on with a single request. */
async function* onePass(
  url: string,
  from: number,
  options: FetchOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const response = await request(url, from, options);
  // a server without range requests sends the file from its beginning
  let skip = response.status === 206 ? 0 : from;
  const reader = response.body?.getReader();
  try {
    for (;;) {
      const part = await reader?.read();
      if (!part || part.done) return;
      const piece = part.value.subarray(Math.min(skip, part.value.byteLength));
      skip -= part.value.byteLength - piece.byteLength;
      if (piece.byteLength > 0) yield piece;
    }
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

async function request(url: string, from: number, options: FetchOptions): Promise<Response> {
  const headers: HeadersInit = from > 0 ? { Range: `bytes=${from}-` } : {};
  let response: Response;
  try {
    response = await (options.fetch ?? fetch)(url, {
      headers,
      cache: "no-cache", // revalidates the browser's copy; the weights are stored elsewhere
      signal: options.signal ?? null,
    });
  } catch (error) {
    throwIfAborted(options.signal);
    throw asDownloadError(url, error);
  }
  if (response.ok) return response;
  const { status } = response;
  throw new DownloadError(url, `${url} cannot be fetched: HTTP ${status}`, { status });
}

/** Whether a retry is useless, because the server refused the request. */
function isFinal(error: unknown): boolean {
  const status = error instanceof DownloadError ? error.status : undefined;
  return status !== undefined && status >= 400 && status < 500 && ![408, 425, 429].includes(status);
}

function asDownloadError(url: string, error: unknown): unknown {
  if (error instanceof DownloadError || error instanceof DamagedFileError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new DownloadError(url, `${url} cannot be fetched: ${reason}`, { cause: error });
}

function wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new AbortedError(undefined, { cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
