/** Tests a package whose grammar module was built without a grammar compiler. */
import assert from "node:assert/strict";
import { it } from "node:test";

import { MLCEngine, ModelCache, type RequestError } from "../../src/index.js";
import { folder } from "../model_folder.js";
import { ScriptedCore } from "../scripted_core.js";

it("refuses what needs a grammar by that name, and answers all else", async () => {
  const core = new ScriptedCore((_, n) => n, { context: 2048 });
  const engine = new MLCEngine({
    cache: ModelCache.inMemory(),
    loadCore: () => Promise.resolve(core),
  });
  const files = folder({ shards: [100] });
  await engine.load(new Map([...files].map(([name, bytes]) => [name, new Blob([bytes])])));
  const messages = [{ role: "user" as const, content: "the cat" }];
  for (const response_format of [
    { type: "json_object" as const },
    { type: "grammar" as const, grammar: 'root ::= "yes"' },
  ]) {
    await assert.rejects(
      engine.chat.completions.create({ messages, response_format }),
      ({ name, message, param, reason }: RequestError) => {
        assert.equal(name, "RequestError");
        assert.match(message, /^response_format\S* needs a grammar .* built without xgrammar/);
        assert.match(param ?? "", /^response_format/);
        assert.equal(reason, "unsupported_parameter");
        return true;
      },
    );
  }
  const { choices } = await engine.chat.completions.create({ messages, max_tokens: 4 });
  assert.ok(choices[0]);
});
