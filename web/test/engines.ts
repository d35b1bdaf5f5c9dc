/** Engines over cores that write what a script says, on this thread and behind a worker's border. */
import assert from "node:assert/strict";

import { type Engine, MLCEngine, ModelCache } from "../src/index.js";
import { connect, serve } from "../src/worker.js";
import { appOf, type Files, folder } from "./model_folder.js";
import { type Script, ScriptedCore } from "./scripted_core.js";

const files = folder({ shards: [100] });
export const tokenizer = await appOf(files);
export const encoded = (text: string, addSpecialTokens = true): number[] => [
  ...tokenizer.encode(text, { addSpecialTokens }),
];
export const EOS = encoded("</s>", false)[0] ?? -1;

/** Writes a text, then the end. */
export function writes(text: string): Script {
  const ids = [...encoded(text), EOS];
  return (_, n) => ids[n] ?? EOS;
}

export function blobs(all: Files): Map<string, Blob> {
  return new Map([...all].map(([name, bytes]) => [name, new Blob([bytes])]));
}

export const KINDS = ["on this thread", "behind a worker's border"] as const;
export type Kind = (typeof KINDS)[number];

/** An engine with a model of each core: "small", "small-1", ... */
export async function engineOf(kind: Kind, ...cores: ScriptedCore[]): Promise<Engine> {
  const left = [...cores];
  const local = new MLCEngine({
    cache: ModelCache.inMemory(),
    loadCore: () => Promise.resolve(left.shift() ?? new ScriptedCore(writes(""))),
  });
  const engine = kind === "on this thread" ? local : remote(local);
  for (const [k] of cores.entries()) {
    await engine.load(blobs(files), { name: k === 0 ? "small" : `small-${k}` });
  }
  return engine;
}

const opened: { close: () => void }[] = [];

/** After each test: let go of workers. */
export function closeAll(): void {
  for (const one of opened.splice(0)) one.close();
}

/** As in a page and its worker, with both on this thread. */
function remote(engine: Engine): Engine {
  const scope = new EventTarget();
  serve(engine, scope);
  const connected = connect({
    postMessage: (data: unknown, ports?: unknown) => {
      const event = new MessageEvent("message", { data, ports: (ports ?? []) as MessagePort[] });
      scope.dispatchEvent(event);
    },
  });
  opened.push(connected);
  return connected;
}

/** Wait until it has happened, a second at most. */
export async function settled(happened: () => boolean): Promise<void> {
  for (let k = 0; k < 200 && !happened(); k += 1) await new Promise((go) => setTimeout(go, 5));
  assert.ok(happened());
}
