// What is asked of a core wherever it runs: in Node, and in a browser's page. Answers are plain
// data, which the test compares with those of this machine's own core.

/** Greedy, to the end of the given number of tokens. */
function greedy(core, tokens) {
  return { ...core.paramsDefault(), temperature: 0, maxTokens: tokens };
}

/**
 * Runs requests beside each other: [{tokens, params, mask?}] -> [{tokens, finish, error?, cached}].
 * `onStep` is called after each step with its number.
 */
export async function run(core, requests, onStep = () => undefined) {
  const outputs = requests.map(() => ({ tokens: [], prompt: [], finish: "", cached: 0 }));
  requests.forEach(({ tokens, params, mask }, id) =>
    core.add(id, Int32Array.from(tokens), params, mask),
  );
  for (let step = 0, left = requests.length; left > 0; step++) {
    if (step > 5000) throw new Error("no end of it");
    for (const event of await core.step()) {
      const one = outputs[event.id];
      one.cached = event.cachedTokens;
      if (event.token >= 0) (event.prompt ? one.prompt : one.tokens).push(event.token);
      if (event.finish === undefined) continue;
      one.finish = event.finish;
      if (event.error !== undefined) one.error = event.error;
      left--;
    }
    onStep(step);
  }
  return outputs;
}

function failure(call) {
  try {
    call();
    return "";
  } catch (thrown) {
    return `${thrown.status}: ${thrown.message}`;
  }
}

async function rejection(promise) {
  try {
    await promise;
    return "";
  } catch (thrown) {
    return `${thrown.status}: ${thrown.message}`;
  }
}

/** A mask that lets one token come at each place, and says which (jump-forward) or not. */
function only(tokens, forces, log) {
  let at = 0;
  return {
    fill: (bits) => {
      bits[tokens[at] >> 5] |= 1 << (tokens[at] & 31);
    },
    accept: () => ++at === tokens.length,
    ...(forces && { forced: (most) => tokens.slice(at, at + most) }),
    release: () => log.push("released"),
  };
}

/**
 * Those that every device answers. `prompts` are lists of tokens, `tokens` how many follow in the
 * batch, `few` how many where nothing depends on it: a browser's software device takes its time.
 */
export async function everywhere(core, { prompts, tokens, few }) {
  const ask = (prompt, more = {}) => ({
    tokens: prompt,
    params: { ...greedy(core, tokens), ...more },
  });
  const out = {};
  out.solo = [];
  for (const prompt of prompts) {
    out.solo.push((await run(core, [ask(prompt, { maxTokens: few })]))[0]);
    core.clearCache();
  }
  out.decodeDispatches = core.stats().dispatches;
  out.together = await run(core, prompts.map((prompt) => ask(prompt)));
  out.statsTogether = core.stats();

  // A second turn: what the first has said, and more.
  core.clearCache();
  const first = (await run(core, [ask(prompts[0], { maxTokens: few })]))[0];
  const turn = [...prompts[0], ...first.tokens, ...prompts[1]];
  out.second = (await run(core, [ask(turn, { maxTokens: 8 })]))[0];
  core.clearCache();
  out.secondAlone = (await run(core, [ask(turn, { maxTokens: 8 })]))[0];

  // Abort: while others go on, and in the middle of a step.
  core.clearCache();
  const before = core.stats();
  const both = [ask(prompts[0], { maxTokens: few }), ask(prompts[1], { maxTokens: few })];
  const aborted = run(core, both, (step) => {
    if (step === 3) core.abort(0);
  });
  out.aborted = await aborted;
  core.add(7, Int32Array.from(prompts[0]), greedy(core, few));
  const step = core.step();
  core.abort(7);
  out.abortedInStep = [...(await step), ...(await core.step())].map((event) => event.finish);
  core.clearCache();
  out.pages = { before: before.pagesFree, after: core.stats().pagesFree };

  // Errors are errors, and the core goes on.
  out.errors = {
    token: failure(() => core.add(1, Int32Array.of(1 << 20), greedy(core, 1))),
    params: failure(() => core.add(1, Int32Array.of(1), { ...greedy(core, 1), topP: 7 })),
    empty: failure(() => core.add(1, Int32Array.of(), greedy(core, 1))),
    unknown: failure(() => core.abort(99)),
  };
  const log = [];
  const words = [5, 9, 3, 12];
  const failing = {
    ...only(words, false, log),
    fill: () => {
      throw new Error("no words left");
    },
  };
  out.masked = await run(core, [
    { ...ask(prompts[0]), mask: only(words, false, log) },
    { ...ask(prompts[1]), mask: only(words, true, log) },
    { ...ask(prompts[1]), mask: failing },
  ]);
  out.released = log.length;
  out.biased = await run(core, [
    ask(prompts[0], { bias: new Map([[7, 0]]), maxTokens: 8 }), // takes whole rows
    ask(prompts[1], { temperature: 0.8, topP: 0.9, seed: 5, maxTokens: few }),
    ask(prompts[2], { temperature: 1.1, seed: 6, maxTokens: few, promptLogprobs: 1 }),
  ]);
  const together = [core.step(), rejection(core.step())];
  out.errors.twice = await together[1];
  await together[0];
  while ((await core.step()).length > 0);
  out.again = (await run(core, [ask(prompts[0], { maxTokens: few })]))[0];
  out.stats = core.stats();
  return out;
}
