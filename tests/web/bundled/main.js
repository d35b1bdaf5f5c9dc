// A page of a user of the package: loads the model here and in a worker, asks, and posts what
// came of it. Served by tests/web/browser.py as its bundler made it.
import { MLCEngine } from "wherry";
import { connect } from "wherry/worker";

const properties = { n: { enum: [4, 5] } };
const schema = { type: "object", properties, required: ["n"], additionalProperties: false };

async function answers(engine) {
  await engine.load(new URL("/demo/", location.href));
  const ask = async (content, extra = {}) => {
    const messages = [{ role: "user", content }];
    const request = { messages, temperature: 0, max_tokens: 24, ...extra };
    const { choices } = await engine.chat.completions.create(request);
    return choices[0].message.content;
  };
  const said = await ask("What is the capital of France?");
  const format = { type: "json_schema", json_schema: { schema } };
  const constrained = await ask("What is two plus three?", { response_format: format });
  const refused = await engine.load(new URL("/none/", location.href)).catch(({ name }) => name);
  await engine.dispose();
  return { said, constrained, refused };
}

async function all() {
  const page = await answers(new MLCEngine());
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  return { page, worker: await answers(connect(worker)) };
}

all()
  .catch((error) => ({ error: `${error.name}: ${error.message}` }))
  .then((answer) => fetch("/", { method: "POST", body: JSON.stringify(answer) }));
