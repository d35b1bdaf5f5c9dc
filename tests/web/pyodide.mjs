// Python in WebAssembly, in Node: installs the wheel, gives it compiled folders as /models/NAME, and runs a script.
//   node pyodide.mjs PYODIDE WHEEL SCRIPT NAME=FOLDER... < given
// The script reads `given` and leaves plain data in `out`.
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [pyodide, wheel, script, ...models] = process.argv.slice(2);
const given = await text(process.stdin);
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")).href);
const python = await loadPyodide({ stdout: (line) => process.stderr.write(`${line}\n`) });
await python.loadPackage(pathToFileURL(wheel).href, { messageCallback: () => undefined });
for (const [model, folder] of models.map((one) => one.split("="))) {
  python.FS.mkdirTree(`/models/${model}`);
  for (const name of await readdir(folder)) {
    python.FS.writeFile(`/models/${model}/${name}`, await readFile(path.join(folder, name)));
  }
}
python.globals.set("given_text", given);
await python.runPythonAsync("import json; given = json.loads(given_text); out = {}");
await python.runPythonAsync(await readFile(script, "utf8"), { filename: script });
process.stdout.write(python.runPython("json.dumps(out)"));
process.exit(0);
