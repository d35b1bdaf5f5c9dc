/** Runs an engine in a Worker, SharedWorker or Service Worker, and connects pages to it. */
export { connect, type RemoteEngine, type WorkerTarget } from "./worker/connect.js";
export { serve } from "./worker/serve.js";
export { serveFetch, type ServeFetchOptions } from "./worker/serve_fetch.js";
