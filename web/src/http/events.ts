import { errorBody } from "./errors.js";

const HEADERS = { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" };
const encoder = new TextEncoder();

/**
 * A stream of server-sent events, one for each chunk, and "[DONE]". What fails after the first byte
 * is an event with the error, and the last. Who stops reading ends the request.
 */
export function eventsOf(
  chunks: AsyncIterator<unknown>,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Response {
  let read = true;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const next = await chunks.next();
        if (!read) return;
        controller.enqueue(event(next.done ? "[DONE]" : JSON.stringify(next.value)));
        if (next.done) controller.close();
      } catch (error) {
        if (!read) return;
        if (signal.aborted) {
          controller.error(signal.reason);
          return;
        }
        controller.enqueue(event(JSON.stringify(errorBody(error))));
        controller.close();
      }
    },
    async cancel() {
      read = false;
      await chunks.return?.();
    },
  });
  return new Response(body, { headers: { ...HEADERS, ...headers } });
}

/** JSON has no line breaks, so one line is enough. */
function event(data: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(`data: ${data}\n\n`);
}
