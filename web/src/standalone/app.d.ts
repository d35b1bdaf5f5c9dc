/** The app for pages, wherry-app.wasm: gzipped, in base64. Made by scripts/programs.js. */
export declare const program: string;
