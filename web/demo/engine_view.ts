import type { EngineStats } from "../src/index.js";
import { Crowd } from "./crowd.js";
import { byId, describe, say } from "./dom.js";
import { bytes, number, percent } from "./format.js";
import { PagesGrid } from "./pages_grid.js";
import { Plot } from "./plot.js";
import type { Session } from "./session.js";

const WINDOW_MS = 2500; // milliseconds over which the tokens per second are averaged

/** The view of the engine: the batch, the pages, prefix cache hits, and tokens per second. */
export class EngineView {
  readonly #session: Session;
  readonly #crowd: Crowd;
  readonly #plot = new Plot(byId("plot"));
  readonly #pages = new PagesGrid(byId("pages"));
  readonly #size = byId<HTMLInputElement>("crowd-size");
  // token counts of the last seconds, with their times
  #seen: { readonly tokens: number; readonly at: number }[] = [];
  #rate = 0;

  constructor(session: Session) {
    this.#session = session;
    this.#crowd = new Crowd(session.engine, byId("lanes"));
    this.#size.addEventListener("input", () => {
      byId("crowd-count").textContent = this.#size.value;
      if (this.#crowd.running) this.#crowd.start(this.#size.valueAsNumber);
    });
    byId("crowd").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#toggle();
    });
    session.listen(({ kind }) => {
      if (kind !== "ready") this.stop();
      byId<HTMLButtonElement>("crowd-start").disabled = kind !== "ready";
      this.#seen = [];
    });
    this.#tiles(undefined);
  }

  /** Stop the conversations that this view has started. */
  stop(): void {
    this.#crowd.stop();
    byId("crowd-start").textContent = "Start";
  }

  /** Show new counters; called several times per second. */
  show(stats: EngineStats): void {
    const kept = Math.min(stats.pagesCached, stats.pagesFree);
    const used = stats.pagesTotal - stats.pagesFree;
    this.#pages.show(used, kept, stats.pagesTotal, stats.pageSize);
    byId("batch-note").textContent =
      `${stats.running} writing, ${stats.prefilling} reading, ${stats.waiting} waiting`;
    this.#tiles(stats);
  }

  /** Append a new value to the curve. */
  tick(stats: EngineStats | undefined): void {
    const now = performance.now();
    if (stats) {
      this.#seen = this.#seen.filter(({ at }) => now - at < WINDOW_MS);
      this.#seen.push({ tokens: stats.decodeTokens, at: now });
    }
    const [first] = this.#seen;
    const seconds = first ? (now - first.at) / 1000 : 0;
    this.#rate = stats && first && seconds > 0 ? (stats.decodeTokens - first.tokens) / seconds : 0;
    this.#plot.push(this.#rate);
  }

  #toggle(): void {
    if (this.#crowd.running) {
      this.stop();
      say("The conversations have ended.");
      return;
    }
    if (this.#session.state.kind !== "ready") return;
    this.#crowd.start(this.#size.valueAsNumber);
    byId("crowd-start").textContent = "Stop";
    say(`${this.#size.value} conversations have begun.`);
  }

  #tiles(stats: EngineStats | undefined): void {
    const share = stats ? stats.decodeTokens + stats.prefillTokens : 0;
    describe(byId("tiles"), [
      ["Speed", `${number(this.#rate)}\u202ftokens/s`],
      [
        "In the batch",
        stats ? `${stats.running + stats.prefilling}\u202fof ${stats.openRequests}` : "–",
      ],
      ["Prefix hits", stats ? percent(stats.cachedTokens, stats.promptTokens) : "–"],
      ["Tokens per step", stats && stats.steps > 0 ? number(share / stats.steps) : "–"],
      stats && stats.dispatches > 0
        ? ["Kernels per step", String(stats.dispatches)]
        : ["Steps", String(stats?.steps ?? "–")],
      ["Memory", stats ? bytes(stats.deviceBytes + stats.memoryBytes) : "–"],
    ]);
  }
}
