// The library for grammars as a module that every bundler and every page takes. As it is published it
// asks for modules of Node, which bundlers for browsers refuse, and its program is three quarters of a
// megabyte in base64: here it is gzipped before.
import { Buffer } from "node:buffer";
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const FILE = /web-xgrammar[\\/]lib[\\/]index\.js$/;
const NAMES = ["Grammar", "GrammarCompiler", "GrammarMatcher", "Testings", "TokenizerInfo"];
const START = `
let starting;
async function started(program) {
  const bytes = Uint8Array.from(atob(program), (byte) => byte.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return Module({ wasmBinary: await new Response(plain).arrayBuffer() });
}`;

/** For esbuild: whoever imports the library gets it changed. */
export const grammarLibrary = {
  name: "grammar-library",
  setup({ onLoad }) {
    onLoad({ filter: FILE }, async ({ path }) => ({
      contents: changed(await readFile(path, "utf8")),
    }));
  },
};

function changed(published) {
  let program;
  let text = published;
  /** Each of them has to be there: another version of the library is looked at anew. */
  const replace = (what, by) => {
    const before = text;
    text = text.replace(what, by);
    if (text === before) throw new Error(`@mlc-ai/web-xgrammar has no ${what} any more`);
  };
  replace(/^[\s\S]*?\(function \(exports\) \{ 'use strict';/, "const exports = {};");
  replace(/\}\)\);\s*(\/\/# sourceMappingURL=\S+\s*)?$/, `export { ${NAMES.join(", ")} };`);
  // Where the script lies: nothing is read from there.
  replace(
    /\(typeof document === 'undefined' && typeof location.*?document\.baseURI\)\.href\)\)/g,
    '""',
  );
  replace(/var ENVIRONMENT_IS_WEB=[^;]*;/, "var ENVIRONMENT_IS_WEB=true;");
  replace(/var ENVIRONMENT_IS_NODE=[^;]*;/, "");
  replace(/\bENVIRONMENT_IS_NODE\b/g, "false");
  replace(/"data:application\/octet-stream;base64,([\w+/=]+)"/, (_, found) => {
    program = gzipSync(Buffer.from(found, "base64"), { level: 9 }).toString("base64");
    return '""';
  });
  // Two requests may be the first at once; they share one instance.
  replace("binding = await Module();", `binding = await (starting ??= started("${program}"));`);
  return text + START;
}
