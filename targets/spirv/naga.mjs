// WGSL to SPIR-V for a module's kernels, all in one process.
// node naga.mjs FOLDER < {"name": "wgsl", ...} > {"spirv": {"name": "base64"}, "problems": {...}}
// FOLDER holds naga.js and naga_bg.wasm of the npm package naga-wasm.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const naga = await import(pathToFileURL(`${folder}/naga.js`).href);
naga.initSync({ module: readFileSync(`${folder}/naga_bg.wasm`) });

function compile(source) {
  const module = naga.parseWgsl(source);
  const info = naga.validate(module);
  const words = naga.writeSpirv(module, info, { flags: { adjustCoordinateSpace: false } });
  info.free();
  module.free();
  return Buffer.from(words.buffer, words.byteOffset, words.byteLength).toString("base64");
}

const spirv = {};
const problems = {};
for (const [name, source] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  try {
    spirv[name] = compile(source);
  } catch (error) {
    problems[name] = String(error.message ?? error);
  }
}
process.stdout.write(JSON.stringify({ spirv, problems }));
