/** Tests workers that do not start. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { MLCEngine, ModelCache, WorkerError } from "../src/index.js";
import { connect, serve } from "../src/worker.js";

describe("a worker that fails", () => {
  const failsWith = (error: unknown, message: RegExp): boolean =>
    error instanceof WorkerError && error.name === "WorkerError" && message.test(error.message);

  it("tells why it did not start, to all who wait and who come later", async () => {
    const target = Object.assign(new EventTarget(), { postMessage: () => undefined });
    const engine = connect(target);
    const request = { prompt: "a", stream: true as const };
    const waiting = [engine.load("http://127.0.0.1:1/"), engine.completions.create(request)];
    const event = Object.assign(new Event("error"), {
      message: "boom",
      filename: "w.js",
      lineno: 3,
    });
    target.dispatchEvent(event);
    for (const one of [...waiting, engine.models()]) {
      await assert.rejects(one, (e) => failsWith(e, /did not start: boom \(w\.js:3\)$/));
    }
    engine.close();
  });

  it("is given up where it never answers, and taken back where it was slow", async () => {
    const scope = new EventTarget();
    const sent: Event[] = [];
    const postMessage = (data: unknown, ports: unknown): void => {
      sent.push(new MessageEvent("message", { data, ports: (ports ?? []) as MessagePort[] }));
    };
    const engine = connect({ postMessage }, { startTimeout: 20 });
    await assert.rejects(engine.models(), (e) => failsWith(e, /0\.02 s\. Does it call serve\(\)/));
    serve(new MLCEngine({ cache: ModelCache.inMemory() }), scope);
    for (const event of sent) scope.dispatchEvent(event);
    await new Promise((soon) => setTimeout(soon, 20));
    assert.deepEqual(await engine.models(), []);
    engine.close();
  });
});
