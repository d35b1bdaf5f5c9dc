/** OpenAI's own client, whose requests an engine answers. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import OpenAI, { APIUserAbortError } from "openai";

import { CoreError } from "../src/core/core.js";
import { createFetch, type Engine, type Fetch } from "../src/index.js";
import { serveFetch } from "../src/worker.js";
import { closeAll, encoded, engineOf, KINDS, settled, writes } from "./engines.js";
import { type Script, ScriptedCore } from "./scripted_core.js";

const MESSAGES = [{ role: "user" as const, content: "the cat" }];
const BASE = "https://models.example/v1";
const ENDLESS = (): number => encoded("a")[0] ?? 0;

function clientOf(fetch: Fetch): OpenAI {
  return new OpenAI({ baseURL: BASE, apiKey: "-", fetch, maxRetries: 0 });
}

function post(path: string, body: unknown): [string, RequestInit] {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return [`${BASE}${path}`, { method: "POST", body: text }];
}

interface Failure {
  status: number;
  error: { message: string; type: string; param: string | null; code: string | null };
}

async function failureOf(response: Response): Promise<Failure> {
  return { status: response.status, ...((await response.json()) as Omit<Failure, "status">) };
}

afterEach(closeAll);

for (const kind of KINDS) {
  describe(`OpenAI's client, with an engine ${kind}`, () => {
    const create = async (...cores: ScriptedCore[]): Promise<OpenAI> =>
      clientOf(createFetch(await engineOf(kind, ...cores)));

    it("has answers, whole and streamed", async () => {
      const client = await create(new ScriptedCore(writes("the 日本 cat")));
      const request = { model: "small", messages: MESSAGES };
      const { choices, usage } = await client.chat.completions.create(request);
      assert.equal(choices[0]?.message.content, "the 日本 cat");
      const streaming = {
        ...request,
        stream: true,
        stream_options: { include_usage: true },
      } as const;
      let text = "";
      let last: OpenAI.CompletionUsage | null | undefined;
      for await (const chunk of await client.chat.completions.create(streaming)) {
        text += chunk.choices[0]?.delta.content ?? "";
        last = chunk.usage;
      }
      assert.equal(text, "the 日本 cat");
      assert.deepEqual(last, usage);
      const runner = client.chat.completions.stream(request);
      assert.equal(await runner.finalContent(), "the 日本 cat");
    });

    it("has completions, whole and streamed", async () => {
      const client = await create(new ScriptedCore(writes("the cat")));
      const request = { model: "small", prompt: "so", max_tokens: 99 };
      assert.equal((await client.completions.create(request)).choices[0]?.text, "the cat");
      let text = "";
      for await (const chunk of await client.completions.create({ ...request, stream: true })) {
        text += chunk.choices[0]?.text ?? "";
      }
      assert.equal(text, "the cat");
    });

    it("has embeddings, as numbers and in base64", async () => {
      const client = await create(new ScriptedCore(writes("a")));
      const request = { model: "small", input: ["the cat", "so"] };
      const encoding_format = "float" as const;
      const plain = await client.embeddings.create({ ...request, encoding_format });
      assert.equal(plain.data.length, 2);
      assert.equal(plain.data[0]?.embedding.length, 4);
      const { data, usage } = await client.embeddings.create(request); // base64, which it decodes
      assert.deepEqual(
        data.map(({ embedding }) => [...embedding]),
        plain.data.map(({ embedding }) => embedding),
      );
      assert.deepEqual(usage, plain.usage);
    });

    it("runs functions, and sends their results", async () => {
      const call = '{"name": "weather", "arguments": {"city": "Ulm"}}';
      let asks = 0;
      const [first, second] = [writes(call), writes("rain")];
      const script: Script = (prompt, n, params) => {
        if (n === 0) asks += 1;
        return (asks === 1 ? first : second)(prompt, n, params);
      };
      const core = new ScriptedCore(script, { context: 4096 });
      const client = await create(core);
      const cities: unknown[] = [];
      const weather = (city: unknown): string => {
        cities.push(city);
        return "it rains";
      };
      const parameters = { type: "object", properties: { city: { type: "string" } } };
      const tool = {
        type: "function",
        function: { name: "weather", parameters, function: weather },
      };
      const runner = client.chat.completions.runTools({
        model: "small",
        messages: MESSAGES,
        tools: [tool] as unknown as Parameters<OpenAI.Chat.Completions["runTools"]>[0]["tools"],
      });
      assert.equal(await runner.finalContent(), "rain");
      assert.deepEqual(cities, ['{"city": "Ulm"}']);
      assert.equal(core.added.length, 2);
    });

    it("lists models", async () => {
      const client = await create(new ScriptedCore(writes("a")), new ScriptedCore(writes("b")));
      const names: string[] = [];
      for await (const { id, object, owned_by: owner } of client.models.list()) {
        assert.deepEqual([object, owner], ["model", "wherry"]);
        names.push(id);
      }
      assert.deepEqual(names, ["small", "small-1"]);
      assert.equal((await client.models.retrieve("small-1")).id, "small-1");
      await assert.rejects(client.models.retrieve("large/one"), (error: Error) => {
        assert.ok(error instanceof OpenAI.NotFoundError);
        return error.code === "model_not_found" && error.message.includes("no model large/one");
      });
    });

    it("gets the server's errors", async () => {
      const client = await create(new ScriptedCore(writes("a")));
      const ask = (extra: object): Promise<unknown> =>
        client.chat.completions.create({ model: "small", messages: MESSAGES, ...extra });
      const { NotFoundError, BadRequestError } = OpenAI;
      const rows: [object, unknown, string | null, string | null][] = [
        [{ model: "other" }, NotFoundError, "model", "model_not_found"],
        [{ temperature: 3 }, BadRequestError, "temperature", null],
        [{ messages: [] }, BadRequestError, "messages", null],
        [{ max_tokens: 9999 }, BadRequestError, "messages", "context_length_exceeded"],
        [{ audio: {} }, BadRequestError, "audio", "unsupported_parameter"],
        [{ stream: true, top_p: 7 }, BadRequestError, "top_p", null],
      ];
      for (const [extra, expected, param, code] of rows) {
        await assert.rejects(ask(extra), (error: InstanceType<typeof OpenAI.APIError>) => {
          assert.equal(error.constructor, expected, String(error));
          assert.equal(error.type, "invalid_request_error");
          assert.deepEqual([error.param, error.code], [param, code]);
          return true;
        });
      }
    });

    it("aborts, before and within an answer", async () => {
      const core = new ScriptedCore(ENDLESS);
      const client = await create(core);
      const request = { model: "small", messages: MESSAGES };
      const controller = new AbortController();
      const pending = client.chat.completions.create(request, { signal: controller.signal });
      await settled(() => core.open === 1);
      controller.abort();
      await assert.rejects(pending, APIUserAbortError);
      await settled(() => core.open === 0);
      const stream = await client.chat.completions.create({ ...request, stream: true });
      for await (const _ of stream) if (core.open === 1) break; // the client aborts
      await settled(() => core.open === 0);
      const unread = await client.chat.completions.create({ ...request, stream: true });
      unread.controller.abort();
      await settled(() => core.open === 0);
    });

    it("hears within a stream what has failed", async () => {
      const core = new ScriptedCore(ENDLESS);
      const client = await create(core);
      const request = { model: "small", messages: MESSAGES, stream: true } as const;
      const reading = (async () => {
        for await (const _ of await client.chat.completions.create(request));
      })();
      const failed = assert.rejects(reading, (error: InstanceType<typeof OpenAI.APIError>) => {
        assert.ok(error instanceof OpenAI.APIError, String(error));
        return error.code === "engine_error" && error.type === "server_error";
      });
      await settled(() => core.open === 1);
      core.breaks = new CoreError("device_lost", "the GPU was taken away");
      await failed;
      await assert.rejects(
        client.chat.completions.create({ ...request, stream: false }),
        OpenAI.InternalServerError,
      );
    });
  });
}

describe("the fetch of an engine", () => {
  const create = async (core = new ScriptedCore(writes("a"))): Promise<Fetch> =>
    createFetch(await engineOf("on this thread", core));
  const chat = { messages: MESSAGES };

  it("says what there is, of paths and of methods", async () => {
    const fetch = await create();
    const nowhere = await failureOf(await fetch(...post("/audio/speech", {})));
    assert.equal(nowhere.status, 404);
    assert.match(nowhere.error.message, /no POST \/v1\/audio\/speech .* \/chat\/completions,/);
    assert.deepEqual(
      [nowhere.error.type, nowhere.error.code],
      ["invalid_request_error", "not_found"],
    );
    const wrong = await fetch(`${BASE}/chat/completions`);
    assert.equal(wrong.headers.get("Allow"), "POST");
    assert.deepEqual((await failureOf(wrong)).error.code, "method_not_allowed");
    assert.equal((await fetch("https://models.example/chat/completions/")).status, 404);
    assert.equal((await fetch("https://models.example/models")).status, 200); // as the server's
  });

  it("takes what fetch takes, and rejects what it rejects", async () => {
    const fetch = await create();
    const request = new Request(...post("/chat/completions", chat));
    assert.equal((await fetch(request)).status, 200);
    assert.equal((await fetch(new URL(`${BASE}/models`))).status, 200);
    const reason = new Error("enough");
    await assert.rejects(fetch(`${BASE}/models`, { signal: AbortSignal.abort(reason) }), reason);
    await assert.rejects(fetch("no address"), TypeError);
  });

  it("refuses bodies that are no request", async () => {
    const fetch = await create();
    const of = async (body: unknown): Promise<Failure> =>
      failureOf(await fetch(...post("/chat/completions", body)));
    for (const body of ["", "{", '{"messages": [}']) {
      const { status, error } = await of(body);
      assert.deepEqual([status, error.code], [400, "invalid_json"], error.message);
    }
    for (const body of ["null", "[]", "3"]) {
      const { status, error } = await of(body);
      assert.deepEqual([status, error.message], [400, "The request is not a JSON object"]);
    }
    assert.equal((await of({ prompt: "a" })).error.param, "messages");
  });

  it("ignores fields that it does not know, and says so", async () => {
    const fetch = await create();
    const odd = { ...chat, model: "", größe: 1, banana: 2, nothing: null, store: true };
    const response = await fetch(...post("/chat/completions", odd));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("X-Wherry-Ignored"), "banana, gr??e");
    const streamed = await fetch(...post("/chat/completions", { ...odd, stream: true }));
    assert.equal(streamed.headers.get("X-Wherry-Ignored"), "banana, gr??e");
    assert.match(streamed.headers.get("Content-Type") ?? "", /^text\/event-stream/);
    const events = (await streamed.text()).split("\n\n");
    assert.deepEqual(events.slice(-2), ["data: [DONE]", ""]);
    assert.ok(events.slice(0, -2).every((event) => event.startsWith('data: {"id":"chatcmpl-')));
  });

  it("waits for an engine that is being loaded", async () => {
    const engine = engineOf("on this thread", new ScriptedCore(writes("a")));
    const list = await createFetch(engine)(`${BASE}/models`);
    assert.equal(((await list.json()) as { data: unknown[] }).data.length, 1);
    const never = createFetch(Promise.reject<Engine>(new Error("no network")));
    const { status, error } = await failureOf(await never(`${BASE}/models`));
    assert.deepEqual([status, error.message, error.code], [500, "no network", "internal_error"]);
  });
});

describe("a service worker", () => {
  /** Where requests of a page go; undefined: to the network. */
  async function answerer(core: ScriptedCore): Promise<(request: Request) => unknown> {
    const heard = new Map<string, (event: object) => void>();
    const scope = {
      location: { href: "https://page.example/demo/worker.js" },
      clients: { claim: () => Promise.resolve() },
      addEventListener: (type: string, hear: (event: never) => void) => {
        heard.set(type, hear as (event: object) => void);
      },
    };
    serveFetch(await engineOf("on this thread", core), {}, scope);
    return (request) => {
      let answer: unknown;
      const respondWith = (given: unknown): void => void (answer = given);
      heard.get("fetch")?.({ request, respondWith, waitUntil: () => undefined });
      return answer;
    };
  }

  it("answers below its path, and nothing else", async () => {
    const answered = await answerer(new ScriptedCore(writes("a")));
    const elsewhere = ["https://page.example/v1/models", "https://other.example/demo/v1/models"];
    for (const url of elsewhere) assert.equal(answered(new Request(url)), undefined);
    const list = (await answered(new Request("https://page.example/demo/v1/models"))) as Response;
    assert.equal(list.status, 200);
    const path = "https://page.example/demo/v1/x";
    assert.equal(((await answered(new Request(path))) as Response).status, 404);
  });

  it("ends a request whose reader stops", async () => {
    const core = new ScriptedCore(ENDLESS);
    const answered = await answerer(core);
    const url = "https://page.example/demo/v1/chat/completions";
    const body = JSON.stringify({ messages: MESSAGES, stream: true });
    const response = (await answered(new Request(url, { method: "POST", body }))) as Response;
    const reader = response.body?.getReader();
    assert.match(new TextDecoder().decode((await reader?.read())?.value), /^data: \{/);
    assert.equal(core.open, 1);
    await reader?.cancel();
    await settled(() => core.open === 0);
  });
});
