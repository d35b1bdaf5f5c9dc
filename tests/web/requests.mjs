// Answers requests as a page does, through `createFetch`: node requests.mjs WEB_BUILD < GROUPS.
//
// GROUPS: a JSON list; a group is a model that says what it is told to, whatever it is asked:
// {"tokenizer", "template", "said": [id, ...], "tool_format" or none, "requests": [...]}.
// What is printed: of each group and request a list, the whole answer or all chunks.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const built = process.argv[2];
const { createFetch, MLCEngine, ModelCache } = await import(join(built, "src/index.js"));
const { folder } = await import(join(built, "test/model_folder.js"));
const { ScriptedCore } = await import(join(built, "test/scripted_core.js"));

async function scripted({ tokenizer, template, said, tool_format: toolFormat }) {
  const core = new ScriptedCore((_, n) => said[Math.min(n, said.length - 1)], { context: 4096 });
  const engine = new MLCEngine({
    cache: ModelCache.inMemory(),
    loadCore: () => Promise.resolve(core),
  });
  const files = folder({ shards: [10], tokenizer, template });
  const blobs = new Map([...files].map(([name, bytes]) => [name, new Blob([bytes])]));
  await engine.load(blobs, toolFormat === undefined ? {} : { toolFormat });
  return engine;
}

async function answers(fetch, request) {
  const path = "messages" in request ? "chat/completions" : "completions";
  const response = await fetch(`http://page/v1/${path}`, {
    method: "POST",
    body: JSON.stringify(request),
  });
  const text = await response.text();
  if (!response.headers.get("Content-Type").startsWith("text/event-stream")) {
    return [JSON.parse(text)];
  }
  const events = text.trimEnd().split("\n\n").map((event) => event.replace(/^data: /, ""));
  if (events.pop() !== "[DONE]") throw new Error(`a stream without an end: ${text.slice(-200)}`);
  return events.map((event) => JSON.parse(event));
}

const answered = [];
for (const group of JSON.parse(readFileSync(0, "utf8"))) {
  const engine = await scripted(group);
  const fetch = createFetch(engine);
  // A model's name is the request's to choose, as in apps; here it chooses among those loaded.
  const sent = group.requests.map(({ model: _, ...request }) => request);
  answered.push(await Promise.all(sent.map((request) => answers(fetch, request))));
  await engine.dispose();
}
console.log(JSON.stringify(answered));
