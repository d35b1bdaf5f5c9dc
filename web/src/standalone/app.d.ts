/** The app for pages (wherry-app.wasm), gzipped and in base64, which scripts/programs.js writes. */
export declare const program: string;
