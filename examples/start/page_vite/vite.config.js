// A page that is isolated from others may share memory, so that a model computes on several threads.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};
export default { worker: { format: "es" }, server: { headers }, preview: { headers } };
