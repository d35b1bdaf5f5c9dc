/** The app's grammars, wherry-grammar.wasm: gzipped, in base64. Made by scripts/programs.js. */
export declare const program: string;
