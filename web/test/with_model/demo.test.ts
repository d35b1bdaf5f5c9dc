/**
 * Tests the demo model in WebAssembly, from its folder to its answers; WHERRY_MODEL is the folder.
 */
import assert from "node:assert/strict";
import { openAsBlob, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";

import OpenAI from "openai";

import { type ChatCompletion, createFetch, MLCEngine } from "../../src/index.js";

const MESSAGES = [{ role: "user" as const, content: "What is the capital of France?" }];
const folder = process.env["WHERRY_MODEL"] ?? "";
const engine = new MLCEngine();

async function files(): Promise<Map<string, Blob>> {
  const names = readdirSync(folder);
  return new Map(
    await Promise.all(
      names.map(async (name) => [name, await openAsBlob(join(folder, name))] as const),
    ),
  );
}

function ask(extra = {}): Promise<ChatCompletion> {
  return engine.chat.completions.create({ messages: MESSAGES, temperature: 0, ...extra });
}

before(async () => {
  const phases = new Set<string>();
  const info = await engine.load(await files(), { progress: ({ phase }) => phases.add(phase) });
  assert.deepEqual([...phases], ["compile", "weights"]);
  assert.equal(info.name, "demo");
  assert.equal(info.device, "wasm");
  assert.equal(info.context, 1024);
});
after(() => engine.dispose());

it("knows what Python's engine knows", async () => {
  const answer = await ask();
  assert.equal(answer.choices[0]?.message.content, "Paris.");
});

it("answers several at once as one by one, and finds prefixes", async () => {
  const contents = ["Count from one to ten.", "What is two plus three?", "Who are you?"];
  const askEngine = (content: string): Promise<ChatCompletion> =>
    ask({ messages: [{ role: "user", content }], max_tokens: 24 });
  const alone: ChatCompletion[] = [];
  for (const content of contents) alone.push(await askEngine(content));
  const together = await Promise.all(contents.map(askEngine));
  const text = ({ choices }: ChatCompletion): string | null | undefined =>
    choices[0]?.message.content;
  assert.deepEqual(together.map(text), alone.map(text));
  const turns = [
    { role: "user", content: `Tell me a story about a fox. ${"Make it long. ".repeat(8)}` },
  ];
  const first = await ask({ messages: turns, max_tokens: 40 });
  turns.push({ role: "assistant", content: text(first) ?? "" }, { role: "user", content: "More." });
  const second = await ask({ messages: turns, max_tokens: 4 });
  assert.ok(second.usage.prompt_tokens_details.cached_tokens >= 32, JSON.stringify(second.usage));
});

it("frees the pages of what is aborted", async () => {
  const { pagesFree } = await engine.stats();
  const long = { messages: MESSAGES, stream: true as const, ignore_eos: true };
  let seen = 0;
  for await (const _ of await engine.chat.completions.create(long)) if ((seen += 1) === 5) break;
  await ask({ max_tokens: 1 });
  const stats = await engine.stats();
  assert.equal(stats.pagesFree, pagesFree);
  assert.equal(stats.openRequests, 0);
});

it("answers OpenAI's client", async () => {
  const client = new OpenAI({ fetch: createFetch(engine), apiKey: "-" });
  const request = { model: "demo", messages: MESSAGES, temperature: 0 };
  const { choices } = await client.chat.completions.create(request);
  assert.equal(choices[0]?.message.content, "Paris.");
  const stream = client.chat.completions.stream(request);
  assert.equal(await stream.finalContent(), "Paris.");
});

it("samples by the seed", async () => {
  const story = (seed: number): Promise<ChatCompletion> =>
    ask({
      messages: [{ role: "user", content: "Tell me a story." }],
      temperature: 1,
      seed,
      max_tokens: 30,
    });
  const [one, two, other] = await Promise.all([story(1), story(1), story(2)]);
  assert.equal(one.choices[0]?.message.content, two.choices[0]?.message.content);
  assert.notEqual(one.choices[0]?.message.content, other.choices[0]?.message.content);
});
