/** Loads the app's WebAssembly modules, each of which is compiled once for all models. */

const programs = new Map<string, Promise<WebAssembly.Module>>();

/** Return the app module: requests, chat templates, tokenizer, tool calls, responses. */
export function appProgram(): Promise<WebAssembly.Module> {
  return once("app", () => import("../standalone/app.js"));
}

/** Return the grammar module, which is fetched on first use. */
export function grammarProgram(): Promise<WebAssembly.Module> {
  return once("grammar", () => import("../standalone/grammar.js"));
}

/** Return the module `name`; the first call loads it from `script`. */
function once(
  name: string,
  script: () => Promise<{ program: string }>,
): Promise<WebAssembly.Module> {
  const known = programs.get(name);
  if (known) return known;
  const loading = script().then(compiled);
  programs.set(name, loading);
  loading.catch(() => programs.delete(name)); // so that the next call tries again
  return loading;
}

/** Compile a module that is gzipped and encoded in base64, while it is decompressed. */
async function compiled({ program }: { program: string }): Promise<WebAssembly.Module> {
  const letters = atob(program);
  const bytes = new Uint8Array(letters.length);
  // a loop, because Uint8Array.from with a function takes ten times as long
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const headers = { "Content-Type": "application/wasm" };
  return WebAssembly.compileStreaming(new Response(plain, { headers }));
}
