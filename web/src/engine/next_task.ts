import { platform } from "../platform.js";

const waiting: (() => void)[] = [];
let channel: MessageChannel | undefined;

/**
 * Resolves in a task of its own: what came meanwhile (messages, input, a frame) goes first. A
 * channel, because browsers make timers wait for 4 ms.
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
  const made = new MessageChannel();
  made.port1.onmessage = () => waiting.shift()?.();
  return made;
}
