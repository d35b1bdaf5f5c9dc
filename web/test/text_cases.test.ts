/**
 * Tests that the app's module answers as the server does, on the cases of
 * tests/web/text_cases.json.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { type Completion, MLCEngine, ModelCache } from "../src/index.js";
import { appOf, type Files, folder } from "./model_folder.js";
import { ScriptedCore } from "./scripted_core.js";

interface Cases {
  tokenizers: Record<
    string,
    {
      tokenizer: object;
      encode: { text: string; ids: number[] }[];
      detokenize: { prompt: number[]; ids: number[]; pieces: string[] }[];
    }
  >;
  messages: object[];
  templates: { source: string; variables: object; text: string | null }[];
}

const file = new URL("../tests/web/text_cases.json", `file://${process.cwd()}/`);
const cases = JSON.parse(readFileSync(file, "utf8")) as Cases;

/** Return the pieces of a completion's stream if the model writes `ids`. */
async function streamed(files: Files, prompt: number[], ids: number[]): Promise<string[]> {
  const core = new ScriptedCore((_, n) => ids[n] ?? 0);
  const engine = new MLCEngine({
    cache: ModelCache.inMemory(),
    loadCore: () => Promise.resolve(core),
  });
  await engine.load(new Map([...files].map(([name, bytes]) => [name, new Blob([bytes])])));
  const request = { prompt, max_tokens: ids.length, ignore_eos: true, stream: true as const };
  const chunks: Completion[] = [];
  for await (const chunk of await engine.completions.create(request)) chunks.push(chunk);
  await engine.dispose();
  return chunks.map(({ choices }) => choices[0]?.text ?? "").filter(Boolean);
}

for (const [name, own] of Object.entries(cases.tokenizers)) {
  describe(`tokenizer ${name}`, () => {
    const files = folder({ shards: [10], tokenizer: own.tokenizer });

    it("encodes", async () => {
      const app = await appOf(files);
      for (const { text, ids } of own.encode) assert.deepEqual([...app.encode(text)], ids, text);
    });

    it("gives the same pieces of text", async () => {
      for (const { prompt, ids, pieces } of own.detokenize.slice(0, 16)) {
        if (prompt.length === 0 || ids.length === 0) continue;
        // text of the last token, and the text that was withheld before it, without a character
        // that is not complete
        const rest = pieces
          .slice(-2)
          .join("")
          .replace(/\uFFFD+$/, "");
        const expected = [...pieces.slice(0, -2), rest].filter(Boolean);
        assert.deepEqual(
          await streamed(files, prompt, ids),
          expected,
          JSON.stringify({ prompt, ids }),
        );
      }
    });
  });
}

describe("chat templates", () => {
  for (const { source, variables, text } of cases.templates) {
    it(source.slice(0, 60), async () => {
      const app = await appOf(folder({ shards: [10], template: source }));
      const request = { messages: cases.messages, chat_template_kwargs: variables };
      const render = (): string => app.rendered(JSON.stringify(request));
      if (text === null) assert.throws(render, /Roles must alternate/);
      else assert.equal(render(), text);
    });
  }
});
