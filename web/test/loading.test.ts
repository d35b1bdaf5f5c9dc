/** Tests the loading, replacing and refusing of models. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { missingError } from "../src/engine/gpu.js";
import {
  AbortedError,
  MissingFeatureError,
  MLCEngine,
  ModelCache,
  ModelError,
  type ModelInfo,
} from "../src/index.js";
import { type Files, folder, FolderServer } from "./model_folder.js";
import { ScriptedCore } from "./scripted_core.js";

const files = folder({ shards: [100] });

function blobs(all: Files): Map<string, Blob> {
  return new Map([...all].map(([name, bytes]) => [name, new Blob([bytes])]));
}

describe("loading", () => {
  it("leaves one core of a name, whoever loads it at once, and none when it is disposed of", async () => {
    const cores: ScriptedCore[] = [];
    const engine = new MLCEngine({
      cache: ModelCache.inMemory(),
      loadCore: async () => {
        await new Promise((soon) => setTimeout(soon, 5));
        cores.push(new ScriptedCore(() => 0));
        return cores.at(-1) ?? assert.fail();
      },
    });
    const load = (all = files): Promise<unknown> => engine.load(blobs(all), { name: "one" });
    await Promise.all([load(), load(), load()]);
    assert.deepEqual(cores.map(({ destroyed }) => destroyed).sort(), [false, true, true]);
    assert.equal((await engine.models()).length, 1);
    const late = assert.rejects(load(), AbortedError);
    await engine.dispose();
    await late;
    await assert.rejects(load(folder({ shards: [100], tokenizer: {} })), ModelError);
    assert.ok(cores.every(({ destroyed }) => destroyed));
    assert.equal(cores.length, 5);
  });

  const loading = (all: Files): Promise<unknown> =>
    new MLCEngine({ cache: ModelCache.inMemory() }).load(blobs(all));

  it("names what the GPU lacks", async () => {
    const webgpu = { name: "webgpu", device_features: ["shader-f16"] };
    await assert.rejects(loading(folder({ target: webgpu, shards: [] })), (error) => {
      assert.ok(error instanceof MissingFeatureError);
      assert.deepEqual(error.features, ["webgpu"]);
      return true;
    });
  });

  it("tells which features of earlier variants this device lacks", async () => {
    const device_features = ["shader-f16"];
    const variants: Files = new Map(
      [
        ["f16/", folder({ target: { name: "webgpu", device_features }, shards: [] })] as const,
        ["cpu/", files] as const,
      ].flatMap(([place, all]) => [...all].map(([name, bytes]) => [place + name, bytes] as const)),
    );
    const server = await FolderServer.start(variants);
    const engine = new MLCEngine({
      cache: ModelCache.inMemory(),
      loadCore: () => Promise.resolve(new ScriptedCore(() => 0)),
    });
    const load = (...places: string[]): Promise<ModelInfo> =>
      engine.load(places.map((place) => server.url + place));
    assert.deepEqual((await load("f16/", "cpu/")).missing, ["webgpu"]);
    assert.deepEqual((await load("cpu/", "f16/")).missing, []);
    server.stop();
    assert.match(missingError(["webgpu"]).message, /^This browser has no WebGPU\./);
    const scope = globalThis as { isSecureContext?: boolean };
    scope.isSecureContext = false;
    try {
      assert.match(missingError(["webgpu"]).message, /by http from another machine/);
    } finally {
      delete scope.isSecureContext;
    }
  });

  it("advises what the GPU can run: other floats, else the CPU", () => {
    assert.match(missingError(["shader-f16"]).message, /MODEL --target webgpu -q q4f32_1$/);
    for (const lacks of [["webgpu"], ["shader-f16", "maxBufferSize"], ["subgroups"]]) {
      assert.match(missingError(lacks).message, /MODEL --target wasm$/);
    }
  });

  it("refuses models of other targets", async () => {
    for (const [name, words] of [
      ["cuda", /compiled for cuda, which no browser runs\. For browsers: wherry compile/],
      ["webgpu:web-llm", /compiled for @mlc-ai\/web-llm, which loads it\. For this engine: wherry/],
    ] as const) {
      await assert.rejects(loading(folder({ target: { name }, shards: [] })), (error) => {
        assert.ok(error instanceof ModelError);
        assert.match(error.message, words);
        return true;
      });
    }
    const server = await FolderServer.start(folder({ target: { name: "cuda" } }));
    const engine = new MLCEngine({ cache: ModelCache.inMemory() });
    await assert.rejects(engine.load(server.url), ModelError);
    server.stop();
    assert.deepEqual(
      server.requests.map(({ name }) => name),
      ["wherry.json"], // a folder without weights
    );
  });
});
