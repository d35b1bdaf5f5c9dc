/** An engine in a Worker, SharedWorker or Service Worker, and pages that use it. */
export { connect, type RemoteEngine, type WorkerTarget } from "./worker/connect.js";
export { serve } from "./worker/serve.js";
export { serveFetch, type ServeFetchOptions } from "./worker/serve_fetch.js";
