/** Outputs that are held to schemas and grammars. Runs bundled: see scripts/grammar_library.js. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";

import { callsTag } from "../src/grammar/calls_tag.js";
import { numberRange } from "../src/grammar/number_ranges.js";
import { unenforcedIn } from "../src/grammar/schema_audit.js";
import { schemaGrammar } from "../src/grammar/schema_grammar.js";
import { largeSchema } from "../src/grammar/size_limits.js";
import { loadXgrammar, xgrammar } from "../src/grammar/xgrammar.js";
import type { ResponseFormat } from "../src/request/types.js";
import { CLOSING, opening } from "../src/tools/written_calls.js";
import { type ChatCompletion, MLCEngine, ModelCache, RequestError } from "../src/index.js";
import { folder } from "./model_folder.js";
import { ScriptedCore, type Script } from "./scripted_core.js";

before(loadXgrammar);

const MESSAGES = [{ role: "user" as const, content: "the cat" }];

async function engineOf(script: Script): Promise<MLCEngine> {
  const core = new ScriptedCore(script, { context: 2048 });
  const engine = new MLCEngine({
    cache: ModelCache.inMemory(),
    loadCore: () => Promise.resolve(core),
  });
  const files = folder({ shards: [100] });
  await engine.load(new Map([...files].map(([name, bytes]) => [name, new Blob([bytes])])));
  return engine;
}

describe("structured output", () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string" }, old: { type: "boolean" } },
    required: ["name", "old"],
    additionalProperties: false,
  };

  it("is held to a schema, and ends where it is complete", async () => {
    const quote = 6; // of the byte-level alphabet: so that texts end
    const engine = await engineOf((_, n) => (n % 4 === 3 ? quote : (n * 37) % 260));
    for (let round = 0; round < 2; round += 1) {
      const answer = await engine.chat.completions.create({
        messages: MESSAGES,
        response_format: { type: "json_schema", json_schema: { schema } },
      });
      const value = JSON.parse(answer.choices[0]?.message.content ?? "") as Record<string, unknown>;
      assert.deepEqual(Object.keys(value), ["name", "old"]);
      assert.equal(typeof value["old"], "boolean");
      assert.equal(answer.choices[0]?.finish_reason, "stop");
    }
  });

  it("is held to a grammar", async () => {
    const engine = await engineOf((_, n) => n);
    const answer = await engine.chat.completions.create({
      messages: MESSAGES,
      response_format: { type: "grammar", grammar: 'root ::= "yes" | "no"' },
    });
    assert.match(answer.choices[0]?.message.content ?? "", /^(yes|no)$/);
  });

  it("is calls of tools where they are asked for, with arguments that fit", async () => {
    const quote = 6;
    const engine = await engineOf((_, n) => (n % 4 === 3 ? quote : (n * 37) % 260));
    const parameters = { properties: schema.properties, required: schema.required };
    const tools = ["cats", "dogs"].map((name) => ({
      type: "function" as const,
      function: { name, parameters },
    }));
    const asked = { messages: MESSAGES, tools, parallel_tool_calls: false };
    const some = { ...asked, tool_choice: "required" as const };
    const dogs = { type: "function" as const, function: { name: "dogs" } };
    for (const request of [some, { ...asked, tool_choice: dogs }]) {
      const { choices } = await engine.chat.completions.create(request);
      const calls = choices[0]?.message.tool_calls ?? [];
      assert.equal(calls.length, 1, JSON.stringify(choices));
      assert.equal(choices[0]?.message.content, null);
      const value = JSON.parse(calls[0]?.function.arguments ?? "") as Record<string, unknown>;
      assert.deepEqual(Object.keys(value), ["name", "old"]);
      assert.ok(["cats", "dogs"].includes(calls[0]?.function.name ?? ""));
      if (request !== some) assert.equal(calls[0]?.function.name, "dogs");
    }
  });

  it("refuses what would not be enforced, and what is no grammar", async () => {
    const engine = await engineOf(() => 9);
    const asked = (response_format: object): Promise<ChatCompletion> =>
      engine.chat.completions.create({ messages: MESSAGES, response_format } as {
        messages: typeof MESSAGES;
      });
    const unique = { properties: { tags: { type: "array", uniqueItems: true, not: {} } } };
    await assert.rejects(asked({ type: "json_schema", json_schema: { schema: unique } }), {
      name: "RequestError",
      message: /properties\.tags\.uniqueItems, properties\.tags\.not/,
    });
    await assert.rejects(asked({ type: "grammar", grammar: "root ::= (" }), RequestError);
    await assert.rejects(asked({ type: "json_schema", json_schema: { schema: { $ref: "#" } } }), {
      name: "RequestError",
      message: /No token of the vocabulary can begin/,
    });
  });

  it("refuses what would stop the page, with its size", async () => {
    const engine = await engineOf(() => 0);
    const refused = async (response_format: ResponseFormat, message: RegExp): Promise<void> => {
      const asked = engine.chat.completions.create({ messages: MESSAGES, response_format });
      await assert.rejects(asked, { name: "RequestError", message });
    };
    const schemas = (schema: Record<string, unknown>): ResponseFormat => ({
      type: "json_schema",
      json_schema: { name: "x", schema },
    });
    const names = Array.from({ length: 3000 }, (_, i) => [`p${i}`, { type: "string" }]);
    const wide = { type: "object", properties: Object.fromEntries(names) as object };
    await refused(schemas(wide), /^The schema has \d{5} characters as JSON; accepted are 32768$/);
    let deep: Record<string, unknown> = { enum: ["{[(".repeat(99)] }; // brackets in texts are none
    for (let i = 0; i < 62; i += 1) deep = { type: "array", items: deep };
    assert.equal(largeSchema(deep), undefined); // 62 of arrays, of the constant 2
    await refused(schemas({ items: deep }), /^The schema has brackets 65 deep; accepted are 64$/);
    const nested = `root ::= ${"(".repeat(200)}"a"${")".repeat(200)}`;
    await refused({ type: "grammar", grammar: nested }, /brackets 200 deep; accepted are 64$/);
    const long = `root ::= "${"a".repeat(70000)}"`;
    await refused({ type: "grammar", grammar: long }, /^The grammar has 70011 characters; acc/);
  });
});

/** A row that apps are held to, too (tests/app/test_schema_cases.py). */
interface SchemaCase {
  name: string;
  schema: unknown;
  valid?: string[];
  invalid?: string[];
  unenforced?: string[];
  browsers?: string[]; // what browsers do not enforce, though apps do
}

describe("schemas", () => {
  const file = new URL("../tests/app/schema_cases.json", `file://${process.cwd()}/`);
  for (const row of JSON.parse(readFileSync(file, "utf8")) as SchemaCase[]) {
    it(row.name, async () => {
      const refused = row.unenforced ?? row.browsers ?? [];
      assert.deepEqual(unenforcedIn(row.schema), refused);
      if (refused.length > 0) return;
      const grammar = await xgrammar.Grammar.fromEBNF(await schemaGrammar(row.schema));
      const taken = async (texts: string[] = []): Promise<string[]> => {
        const kept: string[] = [];
        for (const text of texts) {
          if (await xgrammar.Testings.isGrammarAcceptString(grammar, text)) kept.push(text);
        }
        return kept;
      };
      assert.deepEqual(await taken(row.valid), row.valid);
      assert.deepEqual(await taken(row.invalid), []);
    });
  }
});

describe("calls", () => {
  it("have arguments in which numbers have bounds", async () => {
    const parameters = {
      properties: { 'so "sure"': { type: "number", minimum: 0, maximum: 1 } },
      required: ['so "sure"'],
    };
    const tools = [{ type: "function" as const, function: { name: "rate", parameters } }];
    const tag = await callsTag({ tools, must: true, several: false, named: true }, schemaGrammar);
    const grammar = await xgrammar.Grammar.fromStructuralTag(tag);
    const call = (value: number): string =>
      opening("rate") + JSON.stringify({ 'so "sure"': value }).replace(":", ": ") + CLOSING;
    const takes = (value: number): Promise<boolean> =>
      xgrammar.Testings.isGrammarAcceptString(grammar, call(value));
    assert.ok(await takes(0.75));
    assert.ok(!(await takes(1.75)));
  });
});

describe("numbers between bounds", () => {
  /** The expression, which has no more than regular ones have. */
  function pattern(expression: string): RegExp {
    const written = expression.replaceAll(/"([^"]*)"/g, (_, text: string) => `(?:${text})`);
    return new RegExp(`^(?:${written.replaceAll("(?:.)", "\\.").replaceAll(" ", "")})$`);
  }

  it("are all that are, and no others", () => {
    const bounds = [
      -1100, -165, -101, -100, -99, -10.5, -9, -1, -0.25, -0.05, 0, 0.05, 0.25, 0.255,
    ];
    bounds.push(1, 2, 8.999, 9, 10, 19, 20, 55, 99, 100, 110.75, 199, 1000, 1234);
    for (const low of [undefined, ...bounds]) {
      for (const high of [undefined, ...bounds]) {
        if (low === undefined && high === undefined) continue;
        for (const whole of [true, false]) check(whole, low, high);
      }
    }
  });

  function check(whole: boolean, low?: number, high?: number): void {
    const [from, to] = whole ? [low && Math.ceil(low), high && Math.floor(high)] : [low, high];
    const expression = numberRange(whole, from, to);
    const within = (value: number): boolean =>
      (from === undefined || value >= from) && (to === undefined || value <= to);
    if (expression === undefined) return assert.ok((from ?? 0) > (to ?? 0), `${from} to ${to}`);
    const is = pattern(expression);
    for (const near of [low ?? 0, high ?? 0, 0, 12345]) {
      for (const step of [0, 1, 10, 100, 0.5, 0.1, 0.01, 0.001, 0.0001]) {
        for (const value of [near + step, near - step]) {
          const text = String(Number(value.toFixed(whole ? 0 : 6)));
          if (text.includes("e")) continue;
          assert.equal(
            is.test(text),
            within(Number(text)),
            `${text} in ${from} to ${to}: ${expression}`,
          );
        }
      }
    }
  }
});
