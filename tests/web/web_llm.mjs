// @mlc-ai/web-llm in a page, as it comes: it loads the folder at /model/, and continues prompts.
import { CreateMLCEngine } from "@mlc-ai/web-llm";

const model = new URL("/model/", location.href).href;
let result;
try {
  const { prompts, token, other, tokens } = await (await fetch("/given.json")).json();
  const engine = await CreateMLCEngine("model", {
    appConfig: {
      model_list: [{ model, model_id: "model", model_lib: `${model}resolve/main/model.wasm` }],
    },
    logLevel: "ERROR",
  });
  const options = { temperature: 0, max_tokens: tokens, ignore_eos: true };
  const texts = [];
  for (const prompt of prompts) {
    await engine.resetChat();
    texts.push((await engine.completions.create({ prompt, ...options })).choices[0].text);
  }
  // What its other functions are for: a bias, penalties, draws.
  const [prompt] = prompts;
  const more = {};
  const ask = async (fields) => {
    await engine.resetChat();
    return (await engine.completions.create({ prompt, ...options, ...fields })).choices[0].text;
  };
  more.biased = await ask({ logit_bias: { [token]: 100 }, max_tokens: 4 });
  const either = { logit_bias: { [token]: 100, [other]: 100 } };
  more.either = await ask(either);
  more.penalized = await ask({ ...either, frequency_penalty: 2, presence_penalty: 2 });
  more.drawn = await ask({ temperature: 1, top_p: 0.9, seed: 1 });
  more.again = await ask({ temperature: 1, top_p: 0.9, seed: 1 });
  result = { texts, ...more };
} catch (thrown) {
  result = { failure: String(thrown?.stack ?? thrown) };
}
await fetch("/result", { method: "POST", body: JSON.stringify(result) });
