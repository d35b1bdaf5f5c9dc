/** A worker with an engine; a service worker also answers OpenAI's requests. */
import { MLCEngine } from "../../src/index.js";
import { serve, serveFetch } from "../../src/worker.js";

const engine = new MLCEngine();
serve(engine);
if ("clients" in globalThis) serveFetch(engine);
