// Answers requests for numbers as a page does: node vectors.mjs WEB_BUILD COMPILED_FOLDER < REQUESTS.
//
// What is printed: of each request the answer, or {"error": ...} as the server has it.
import { openAsBlob, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [built, folder] = process.argv.slice(2);
const { MLCEngine } = await import(join(built, "src/index.js"));

const engine = new MLCEngine();
const names = readdirSync(folder);
const blobs = await Promise.all(names.map((name) => openAsBlob(join(folder, name))));
await engine.load(new Map(names.map((name, i) => [name, blobs[i]])));

function answer({ task, ...request }) {
  if (task === "classify") return engine.classify(request);
  return "query" in request ? engine.rerank(request) : engine.embeddings.create(request);
}

async function outcome(request) {
  try {
    return await answer(request);
  } catch ({ message, param = null, reason = null }) {
    return { error: { message, type: "invalid_request_error", param, code: reason } };
  }
}

const requests = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await Promise.all(requests.map(outcome))));
await engine.dispose();
