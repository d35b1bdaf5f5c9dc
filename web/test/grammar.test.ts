/**
 * Tests outputs that are constrained to schemas and grammars, by a module that is loaded at the
 * first of them.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { type ChatCompletion, MLCEngine, ModelCache, RequestError } from "../src/index.js";
import { folder } from "./model_folder.js";
import { ScriptedCore, type Script } from "./scripted_core.js";

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
    const quote = 6; // token id of the quotation mark, with which texts end
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
    const base = { messages: MESSAGES, tools, parallel_tool_calls: false };
    const some = { ...base, tool_choice: "required" as const };
    const dogs = { type: "function" as const, function: { name: "dogs" } };
    for (const request of [some, { ...base, tool_choice: dogs }]) {
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
    const ask = (response_format: object): Promise<ChatCompletion> =>
      engine.chat.completions.create({ messages: MESSAGES, response_format } as {
        messages: typeof MESSAGES;
      });
    const open = { properties: { tags: { type: "array", contains: { const: 1 } } } };
    await assert.rejects(ask({ type: "json_schema", json_schema: { schema: open } }), {
      name: "RequestError",
      message: /properties\.tags\.contains/,
    });
    await assert.rejects(ask({ type: "grammar", grammar: "root ::= (" }), RequestError);
    await assert.rejects(ask({ type: "json_schema", json_schema: { schema: { $ref: "#" } } }), {
      name: "RequestError",
      message: /The schema has no value that is valid/,
    });
  });

  it("refuses what is too deep, and goes on", async () => {
    const engine = await engineOf((_, n) => n);
    const ask = async (response_format: object): Promise<string | null | undefined> => {
      const request = { messages: MESSAGES, response_format } as { messages: typeof MESSAGES };
      return (await engine.chat.completions.create(request)).choices[0]?.message.content;
    };
    for (const depth of [1000, 100_000]) {
      const grammar = `root ::= ${"(".repeat(depth)}"a"${")".repeat(depth)}`;
      await assert.rejects(ask({ type: "grammar", grammar }), RequestError);
      assert.equal(await ask({ type: "grammar", grammar: 'root ::= "no"' }), "no");
    }
  });
});
