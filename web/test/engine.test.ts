/** Tests requests of all kinds to an engine whose scripted core writes given tokens. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import type OpenAI from "openai";

import { CoreError } from "../src/core/core.js";
import {
  AbortedError,
  type ChatCompletion,
  type ChatCompletionChunk,
  type Completion,
  DeviceLostError,
  type Engine,
  MLCEngine,
  ModelCache,
  RequestError,
} from "../src/index.js";
import {
  blobs,
  closeAll,
  encoded,
  engineOf,
  EOS,
  KINDS,
  settled,
  tokenizer,
  writes,
} from "./engines.js";
import { folder } from "./model_folder.js";
import { ScriptedCore } from "./scripted_core.js";

const MESSAGES = [{ role: "user" as const, content: "the cat" }];

const TOOL = {
  type: "function" as const,
  function: { name: "weather", parameters: { properties: { city: { type: "string" } } } },
};

async function collect(engine: Engine, extra = {}): Promise<ChatCompletionChunk[]> {
  const request = { messages: MESSAGES, stream: true as const, ...extra };
  const chunks: ChatCompletionChunk[] = [];
  for await (const chunk of await engine.chat.completions.create(request)) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks: ChatCompletionChunk[]): string =>
  chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");

afterEach(closeAll);

for (const kind of KINDS) {
  describe(`an engine ${kind}`, () => {
    it("answers a chat whole and in pieces", async () => {
      const core = new ScriptedCore(writes("the 日本 cat"));
      const engine = await engineOf(kind, core);
      const complete = await engine.chat.completions.create({ messages: MESSAGES });
      assert.equal(complete.choices[0]?.message.content, "the 日本 cat");
      assert.equal(complete.choices[0]?.finish_reason, "stop");
      assert.equal(complete.model, "small");
      const prompt = encoded("<|user|>the cat<|assistant|>", false);
      assert.deepEqual(core.added[0]?.prompt, prompt);
      const sampled = encoded("the 日本 cat").length + 1;
      assert.equal(complete.usage.completion_tokens, sampled);
      assert.equal(complete.usage.prompt_tokens, prompt.length);
      assert.equal(complete.usage.prompt_tokens_details.cached_tokens, 3);
      assert.equal(Math.round(complete.timings.predicted_per_second), sampled * 10);
      const chunks = await collect(engine, { stream_options: { include_usage: true } });
      assert.equal(textOf(chunks), "the 日本 cat");
      assert.equal(chunks[0]?.choices[0]?.delta.role, "assistant");
      assert.equal(chunks.at(-2)?.choices[0]?.finish_reason, "stop");
      assert.deepEqual(chunks.at(-1)?.usage, complete.usage);
      assert.ok(new Set(chunks.map(({ id }) => id)).size === 1);
    });

    it("takes the model's defaults, the request's wishes, and seeds as Python's engine", async () => {
      const core = new ScriptedCore(writes("a"));
      const engine = await engineOf(kind, core);
      await engine.chat.completions.create({ messages: MESSAGES, seed: 5, n: 2, top_p: 0.5 });
      const [one, two] = core.added.map(({ params }) => params);
      assert.equal(one?.temperature, 0.5); // the value comes from generation_config.json
      assert.equal(one.topP, 0.5);
      assert.deepEqual(one.stopIds, [EOS]);
      assert.equal(one.seed, 5n);
      assert.equal(two?.seed, (5n + 0x9e3779b97f4a7c15n) % 2n ** 64n);
      await engine.completions.create({ prompt: "a", logit_bias: { "7": -3 }, seed: -1 });
      assert.deepEqual([...(core.added[2]?.params.bias ?? [])], [[7, -3]]);
      assert.equal(core.added[2]?.params.seed, 2n ** 64n - 1n);
      assert.equal(core.added[2].params.maxTokens, 16);
    });

    it("gives several choices, logprobs and a completion's columns", async () => {
      const engine = await engineOf(kind, new ScriptedCore(writes("the cat")));
      const request = { messages: MESSAGES, n: 2, logprobs: true, top_logprobs: 2 };
      const chat = await engine.chat.completions.create(request);
      assert.deepEqual(
        chat.choices.map(({ index }) => index),
        [0, 1],
      );
      const content = chat.choices[1]?.logprobs?.content ?? [];
      assert.equal(content.map(({ token }) => token).join(""), "the cat");
      assert.equal(content[0]?.top_logprobs.length, 2);
      const [first] = content;
      assert.deepEqual(first?.bytes, [...Buffer.from(first?.token ?? "")]);
      const completion = await engine.completions.create({ prompt: "x", logprobs: 1 });
      const { tokens = [], text_offset: offsets } = completion.choices[0]?.logprobs ?? {};
      assert.equal(tokens.join(""), completion.choices[0]?.text);
      assert.equal(offsets?.[1], tokens[0]?.length);
    });

    it("ends at stop strings, which no piece has a part of", async () => {
      const core = new ScriptedCore(writes("one STOP two and more"));
      const engine = await engineOf(kind, core);
      const chunks = await collect(engine, { stop: ["STOP"] });
      assert.equal(textOf(chunks), "one ");
      assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, "stop");
      await settled(() => core.open === 0);
    });

    it("ends at max_tokens", async () => {
      const engine = await engineOf(kind, new ScriptedCore(writes("the cat sat the cat sat")));
      const answer = await engine.chat.completions.create({ messages: MESSAGES, max_tokens: 2 });
      assert.equal(answer.choices[0]?.finish_reason, "length");
      assert.equal(answer.usage.completion_tokens, 2);
    });

    it("runs many requests at once, of several models", async () => {
      const first = new ScriptedCore(writes("the cat sat the cat"));
      const engine = await engineOf(kind, first, new ScriptedCore(writes("Once upon")));
      await assert.rejects(
        engine.chat.completions.create({ messages: MESSAGES }),
        (error: RequestError) => error instanceof RequestError && error.param === "model",
      );
      const ask = (model: string): Promise<ChatCompletion> =>
        engine.chat.completions.create({ messages: MESSAGES, model });
      const answers = await Promise.all([
        ...Array.from({ length: 8 }, () => ask("small")),
        ask("small-1"),
      ]);
      const texts = answers.map(({ choices }) => choices[0]?.message.content);
      assert.deepEqual(new Set(texts.slice(0, 8)), new Set(["the cat sat the cat"]));
      assert.equal(texts[8], "Once upon");
      assert.equal(first.mostAtOnce, 8);
      assert.deepEqual(
        (await engine.models()).map(({ name }) => name),
        ["small", "small-1"],
      );
    });

    it("ends a request whose signal is aborted, or whose reader leaves", async () => {
      const core = new ScriptedCore(() => encoded("a")[0] ?? 0);
      const engine = await engineOf(kind, core);
      const controller = new AbortController();
      const { signal } = controller;
      const pending = engine.chat.completions.create({ messages: MESSAGES }, { signal });
      await settled(() => core.open === 1);
      controller.abort();
      await assert.rejects(pending, (error: AbortedError) => {
        assert.ok(error instanceof AbortedError);
        return error.name === "AbortError";
      });
      await settled(() => core.open === 0);
      const stream = { messages: MESSAGES, stream: true as const };
      for await (const _ of await engine.chat.completions.create(stream)) break;
      await settled(() => core.open === 0);
      // the stream is ended without being read
      await (await engine.chat.completions.create(stream)).return?.();
      await settled(() => core.open === 0);
      await assert.rejects(engine.chat.completions.create(stream, { signal }), AbortedError);
    });

    it("hands out the calls of tools, whole and in pieces", async () => {
      const call = '{"name": "weather", "arguments": {"city": "Ulm"}}';
      const core = new ScriptedCore(writes(call), { context: 4096 });
      const engine = await engineOf(kind, core);
      const tools = [TOOL];
      const { choices } = await engine.chat.completions.create({ messages: MESSAGES, tools });
      assert.equal(choices[0]?.message.content, null);
      assert.equal(choices[0]?.finish_reason, "tool_calls");
      const [complete] = choices[0]?.message.tool_calls ?? [];
      assert.match(complete?.id ?? "", /^call_[0-9a-f]{24}$/);
      assert.deepEqual(complete?.function, { name: "weather", arguments: '{"city": "Ulm"}' });
      const prompt = tokenizer.decode(core.added[0]?.prompt ?? [], { skipSpecialTokens: false });
      assert.match(prompt, /^<\|system\|>You can call functions\..*"name": "weather"/s);
      const chunks = await collect(engine, { tools });
      const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
      assert.equal(deltas[0]?.function.name, "weather");
      const pieces = deltas.map(({ function: { arguments: piece } }) => piece);
      assert.equal(pieces.join(""), '{"city": "Ulm"}');
      assert.ok(pieces.length > 2);
      // Clients that join chunks would turn a missing content into "".
      assert.ok(chunks.every((chunk) => chunk.choices[0]?.delta.content === undefined));
      assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, "tool_calls");
      const none = { messages: MESSAGES, tools, tool_choice: "none" as const };
      const plain = await engine.chat.completions.create(none);
      assert.equal(plain.choices[0]?.message.content, call);
      assert.equal(plain.choices[0]?.finish_reason, "stop");
    });

    it("tells reasoning from the answer, and reads calls as the model's family writes them", async () => {
      const template =
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}" +
        "{% if tools %}<tool_call>{{ tools | tojson }}</tool_call>{% endif %}" +
        "{% if enable_thinking %}<think></think>{% endif %}<|assistant|>";
      const text =
        '<think>cats</think>Look<tool_call>{"name": "weather", "arguments": {}}</tool_call>';
      const files = folder({ shards: [100], template });
      const local = new MLCEngine({
        cache: ModelCache.inMemory(),
        loadCore: () => Promise.resolve(new ScriptedCore(writes(text))),
      });
      await local.load(blobs(files));
      const { choices, usage } = await local.chat.completions.create({
        messages: MESSAGES,
        tools: [TOOL],
      });
      const { content, reasoning_content: thoughts, tool_calls: calls } = choices[0]?.message ?? {};
      assert.deepEqual([thoughts, content, calls?.[0]?.function.name], ["cats", "Look", "weather"]);
      assert.ok(usage.completion_tokens_details.reasoning_tokens > 0);
    });

    it("refuses what cannot be answered, by the field", async () => {
      const engine = await engineOf(kind, new ScriptedCore(writes("a")));
      const wrong: [object, string][] = [
        [{ messages: [] }, "messages"],
        [{ messages: MESSAGES, temperature: 3 }, "temperature"],
        [{ messages: MESSAGES, top_p: 0 }, "top_p"],
        [{ messages: MESSAGES, n: 0 }, "n"],
        [{ messages: MESSAGES, max_tokens: 4096 }, "messages"],
        [{ messages: MESSAGES, max_tokens: 1.5 }, "max_tokens"],
        [{ messages: MESSAGES, logit_bias: { "9999": 1 } }, "logit_bias"],
        [{ messages: MESSAGES, top_logprobs: 2 }, "top_logprobs"],
        [{ messages: MESSAGES, model: "other" }, "model"],
        [{ messages: MESSAGES, temprature: 1 }, "temprature"],
        [{ messages: MESSAGES, prompt: "a" }, "prompt"],
        [{ messages: MESSAGES, seed: 1.5 }, "seed"],
        [{ messages: MESSAGES, seed: 2 ** 65 }, "seed"],
        [{ messages: MESSAGES, stop: 5 }, "stop"],
        [{ messages: MESSAGES, stop: [5] }, "stop"],
        [
          { messages: MESSAGES, response_format: { type: "json_schema" } },
          "response_format.json_schema",
        ],
        [{ messages: MESSAGES, response_format: "json" }, "response_format"],
        [{ messages: MESSAGES, tools: "x" }, "tools"],
        [{ messages: MESSAGES, tools: [{ type: "function" }] }, "tools[0].function"],
        [{ messages: MESSAGES, tools: [TOOL, TOOL] }, "tools"],
        [{ messages: MESSAGES, tool_choice: "required" }, "tool_choice"],
        [{ messages: MESSAGES, chat_template_kwargs: "x" }, "chat_template_kwargs"],
        [{ messages: MESSAGES, truncation: "old" }, "truncation"],
        [
          { messages: [{ role: "user", content: [{ type: "image_url" }] }] },
          "messages[0].content[0].type",
        ],
      ];
      for (const [request, param] of wrong) {
        const pending = engine.chat.completions.create(request as { messages: typeof MESSAGES });
        await assert.rejects(pending, (error: RequestError) => {
          assert.ok(error instanceof RequestError, String(error));
          assert.equal(error.param, param, error.message);
          return true;
        });
      }
    });

    it("names what a misspelt field may be, and leaves alone what has no effect", async () => {
      const engine = await engineOf(kind, new ScriptedCore(writes("a")));
      const ask = (extra: object): Promise<unknown> =>
        engine.chat.completions.create({ messages: MESSAGES, ...extra });
      await assert.rejects(
        ask({ temprature: 0 }),
        /no field temprature here\. Is it temperature\?/,
      );
      await assert.rejects(ask({ wobble: [] }), /Fields are add_generation_prompt, .*top_p/);
      await ask({ user: "me", metadata: {}, store: true, temprature: null });
    });

    it("leaves out the oldest turns where the context is full, and says how many messages", async () => {
      const core = new ScriptedCore(writes("a"));
      const engine = await engineOf(kind, core);
      const user = (k: number): object => ({
        role: "user",
        content: `${k} ` + "the cat ".repeat(20),
      });
      const turns = Array.from({ length: 8 }, (_, k) => [
        user(k),
        { role: "assistant", content: "a" },
      ]);
      const messages = [{ role: "system", content: "be" }, ...turns.flat(), user(8)];
      const request = { messages: messages as unknown as typeof MESSAGES, max_tokens: 40 };
      await assert.rejects(engine.chat.completions.create(request), /truncation: "auto"/);
      const truncated = { ...request, truncation: "auto" as const };
      const complete = await engine.chat.completions.create(truncated);
      const dropped = complete.dropped_messages ?? 0;
      const prompt = (from: number): number[] => {
        const all = [messages[0], ...messages.slice(1 + from)] as typeof MESSAGES;
        const text = all.map(({ role, content }) => `<|${role}|>${content}`).join("");
        return encoded(`${text}<|assistant|>`, false);
      };
      assert.ok(dropped > 0 && dropped % 2 === 0);
      assert.ok(prompt(dropped - 2).length + 40 > 512 && prompt(dropped).length + 40 <= 512);
      assert.deepEqual(core.added[0]?.prompt, prompt(dropped));
      const [first, ...rest] = await collect(engine, truncated);
      assert.equal(first?.dropped_messages, dropped);
      assert.ok(rest.every((chunk) => !("dropped_messages" in chunk)));
      const short = await engine.chat.completions.create({
        messages: MESSAGES,
        truncation: "auto",
      });
      assert.ok(!("dropped_messages" in short));
    });

    it("tells of a lost device, then and afterwards", async () => {
      const core = new ScriptedCore(() => encoded("a")[0] ?? 0);
      const engine = await engineOf(kind, core);
      const running = collect(engine);
      await settled(() => core.open === 1);
      core.breaks = new CoreError("device_lost", "the GPU was taken away");
      await assert.rejects(running, DeviceLostError);
      await assert.rejects(engine.chat.completions.create({ messages: MESSAGES }), DeviceLostError);
      await engine.dispose();
      assert.ok(core.destroyed);
    });

    it("unloads a model with its requests", async () => {
      const core = new ScriptedCore(() => encoded("a")[0] ?? 0);
      const engine = await engineOf(kind, core);
      const running = assert.rejects(collect(engine), AbortedError);
      await settled(() => core.open === 1);
      await engine.unload("small");
      await running;
      assert.ok(core.destroyed);
      assert.deepEqual(await engine.models(), []);
    });
  });
}

describe("a worker's border", () => {
  it("says what it cannot be sent", async () => {
    const engine = await engineOf("behind a worker's border", new ScriptedCore(writes("a")));
    const request = { messages: MESSAGES, odd: () => undefined };
    await assert.rejects(engine.chat.completions.create(request), RequestError);
    await assert.rejects(collect(engine, { odd: () => undefined }), RequestError);
  });
});

it("the types are those of OpenAI's client", () => {
  const chat = undefined as unknown as ChatCompletion;
  const chunk = undefined as unknown as ChatCompletionChunk;
  const completion = undefined as unknown as Completion;
  // The compiler checks that these requests have the types of OpenAI's client.
  const typed = [
    chat satisfies OpenAI.ChatCompletion,
    chunk satisfies OpenAI.ChatCompletionChunk,
    completion as Omit<OpenAI.Completion, "choices"> satisfies Omit<OpenAI.Completion, "choices">,
  ];
  assert.equal(typed.length, 3);
});
