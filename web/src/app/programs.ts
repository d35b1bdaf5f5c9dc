/** The app's modules, each compiled once for all models. */

const programs = new Map<string, Promise<WebAssembly.Module>>();

/** Requests, templates, tokenizer, tools, answers. */
export function appProgram(): Promise<WebAssembly.Module> {
  return once("app", () => import("../standalone/app.js"));
}

/** Grammars, fetched when first used. */
export function grammarProgram(): Promise<WebAssembly.Module> {
  return once("grammar", () => import("../standalone/grammar.js"));
}

function once(
  name: string,
  script: () => Promise<{ program: string }>,
): Promise<WebAssembly.Module> {
  const known = programs.get(name);
  if (known) return known;
  const made = script().then(compiled);
  programs.set(name, made);
  made.catch(() => programs.delete(name)); // the next call tries again
  return made;
}

async function compiled({ program }: { program: string }): Promise<WebAssembly.Module> {
  const bytes = Uint8Array.from(atob(program), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(plain).arrayBuffer());
}
