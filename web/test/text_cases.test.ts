/** The cases that Python's engine answers in the same way: tests/web/text_cases.json. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { RequestError } from "../src/errors.js";
import { ChatTemplate, type TemplateMessage } from "../src/text/chat_template.js";
import { detokenizer } from "../src/text/detokenizer.js";
import { StopAutomaton, StopStrings } from "../src/text/stop_strings.js";
import { Tokenizer } from "../src/text/tokenizer.js";
import type { TokenizerJson } from "../src/text/tokenizer_json.js";

interface Cases {
  tokenizers: Record<
    string,
    {
      tokenizer: TokenizerJson;
      encode: { text: string; ids: number[] }[];
      pieces: number[][][];
      detokenize: { prompt: number[]; ids: number[]; pieces: string[] }[];
    }
  >;
  stops: { stops: string[]; chunks: string[]; given: string[]; found: string | null }[];
  messages: TemplateMessage[];
  templates: {
    source: string;
    special: Record<string, string>;
    variables: Record<string, unknown>;
    text: string | null;
  }[];
}

const file = new URL("../tests/web/text_cases.json", `file://${process.cwd()}/`);
const cases = JSON.parse(readFileSync(file, "utf8")) as Cases;

for (const [name, own] of Object.entries(cases.tokenizers)) {
  describe(`tokenizer ${name}`, () => {
    const tokenizer = new Tokenizer({ tokenizer: own.tokenizer });

    it("encodes", () => {
      for (const { text, ids } of own.encode) assert.deepEqual(tokenizer.encode(text), ids, text);
    });

    it("knows the bytes of tokens", () => {
      for (const [index, { ids }] of own.encode.entries()) {
        assert.deepEqual(
          ids.map((id) => [...tokenizer.piece(id)]),
          own.pieces[index],
        );
      }
    });

    it("gives the same pieces of text", () => {
      for (const { prompt, ids, pieces } of own.detokenize) {
        const made = detokenizer(tokenizer, prompt);
        const given = [...ids.map((id) => made.push(id)), made.flush()];
        assert.deepEqual(given, pieces, JSON.stringify({ prompt, ids }));
      }
    });
  });
}

describe("stop strings", () => {
  it("end and hold back the same texts", () => {
    for (const { stops, chunks, given, found } of cases.stops) {
      const made = new StopStrings(new StopAutomaton(stops));
      const pieces = [...chunks.map((chunk) => made.push(chunk)), made.flush()];
      assert.deepEqual(pieces, given, JSON.stringify({ stops, chunks }));
      assert.equal(made.found ?? null, found);
    }
  });
});

describe("chat templates", () => {
  for (const { source, special, variables, text } of cases.templates) {
    it(source.slice(0, 60), () => {
      const template = new ChatTemplate(source, special);
      const render = (): string => template.render(cases.messages, { variables });
      if (text === null) assert.throws(render, RequestError);
      else assert.equal(render(), text);
    });
  }
});
