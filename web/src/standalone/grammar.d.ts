/**
 * The app's grammar module (wherry-grammar.wasm), gzipped and in base64, which scripts/programs.js
 * writes.
 */
export declare const program: string;
