/** Tests requests whose answer is numbers, to an engine over a scripted core. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";

import { AbortedError, RequestError } from "../src/index.js";
import { closeAll, encoded, engineOf, KINDS, settled, writes } from "./engines.js";
import { ScriptedCore } from "./scripted_core.js";

afterEach(closeAll);

for (const kind of KINDS) {
  describe(`an engine ${kind}`, () => {
    it("embeds texts, one request of the core for each", async () => {
      const core = new ScriptedCore(writes("a"));
      const engine = await engineOf(kind, core);
      const input = ["the cat", "so"];
      const { data, model, usage } = await engine.embeddings.create({ input });
      assert.equal(model, "small");
      assert.deepEqual(
        core.added.map(({ prompt, params }) => [prompt, params.embed]),
        input.map((text) => [encoded(text), true]),
      );
      const signs = input.map((text) => (encoded(text).length % 2 === 0 ? 1 : -1));
      const expected = signs.map((sign) => [0.6, 0.8 * sign, 0, 0].map(Math.fround));
      assert.deepEqual(
        data.map(({ embedding }) => embedding),
        expected,
      );
      const tokens = input.reduce((sum, text) => sum + encoded(text).length, 0);
      assert.deepEqual(usage, { prompt_tokens: tokens, total_tokens: tokens });
      const short = await engine.embeddings.create({ input: "the cat", dimensions: 1 });
      assert.deepEqual(short.data[0]?.embedding, [1]);
      assert.equal(core.mostAtOnce, 2);
    });

    it("refuses requests for numbers that it cannot answer", async () => {
      const engine = await engineOf(kind, new ScriptedCore(writes("a")));
      const long = "the cat ".repeat(600);
      const asks: [Promise<unknown>, string][] = [
        [engine.embeddings.create({ input: long }), "input"],
        [engine.embeddings.create({ input: "a", dimension: 3 } as never), "dimension"],
        [engine.embeddings.create({ input: "a", prompt_name: "query" }), "prompt_name"],
        [engine.embeddings.create({} as never), "input"],
        [engine.rerank({ query: "a", documents: [] }), "documents"],
      ];
      for (const [pending, param] of asks) {
        const refused = (error: unknown): boolean =>
          error instanceof RequestError && error.param === param;
        await assert.rejects(pending, refused, param);
      }
      const cut = await engine.embeddings.create({ input: long, truncate: true });
      assert.equal(cut.usage.prompt_tokens, 512);
      const kinds = [
        [engine.rerank({ query: "a", documents: "b" }), "no_scores"],
        [engine.classify({ input: "a" }), "no_classes"],
      ] as const;
      for (const [answer, reason] of kinds) {
        const refused = (error: unknown): boolean =>
          error instanceof RequestError && error.reason === reason;
        await assert.rejects(answer, refused, reason);
      }
    });

    it("ends a request for embeddings when its signal says so", async () => {
      const core = new ScriptedCore(writes("a"));
      const engine = await engineOf(kind, core);
      const controller = new AbortController();
      const { signal } = controller;
      const pending = engine.embeddings.create({ input: ["a", "b"] }, { signal });
      controller.abort();
      await assert.rejects(pending, AbortedError);
      await settled(() => core.open === 0);
    });
  });
}
