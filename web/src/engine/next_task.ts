import { platform } from "../platform.js";

const waiting: (() => void)[] = [];
let channel: MessageChannel | undefined;

/**
 * Resolve in a new task, after those that are already queued (messages, input, a frame). It uses a
 * message channel, because browsers delay timers by 4 ms.
 */
export function nextTask(): Promise<void> {
  const { setImmediate: soon } = platform;
  if (soon) return new Promise((resolve) => soon(resolve));
  channel ??= opened();
  const { port2 } = channel;
  return new Promise((resolve) => {
    waiting.push(resolve);
    port2.postMessage(undefined);
  });
}

function opened(): MessageChannel {
  const created = new MessageChannel();
  created.port1.onmessage = () => waiting.shift()?.();
  return created;
}
