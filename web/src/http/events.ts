import { errorBody } from "./errors.js";

const HEADERS = { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" };
const encoder = new TextEncoder();

/**
 * Return a response that streams chunks as server-sent events, followed by "[DONE]". An error after
 * the first byte becomes the last event of the stream. If the client stops reading, the request is
 * aborted.
 *
 * @param chunks the chunks of the response.
 * @param signal aborts the stream with its reason.
 * @param headers additional headers.
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

/** Encode an event. It needs only one data line, because JSON.stringify adds no line breaks. */
function event(data: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(`data: ${data}\n\n`);
}
