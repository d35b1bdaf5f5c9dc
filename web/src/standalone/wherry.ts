/** The whole package in one file, for pages without a bundler. */
export * from "../index.js";
export { connect, type RemoteEngine, serve, serveFetch, type WorkerTarget } from "../worker.js";
