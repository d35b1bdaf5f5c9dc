/** The demo page: two views of one engine, which runs in a worker. */
import { ModelCache, type ModelInfo } from "../src/index.js";
import { ChatView } from "./chat_view.js";
import { type OfferedModel, offeredModels } from "./catalog.js";
import { byId, describe, say } from "./dom.js";
import { EngineView } from "./engine_view.js";
import { bytes, percent, speed } from "./format.js";
import { EACH_MS } from "./plot.js";
import { ModelsView } from "./models_view.js";
import { Session } from "./session.js";
import { SettingsView } from "./settings.js";
import { startTheme } from "./theme.js";

// bytes up to which a model is downloaded without asking the person
const UNASKED_BYTES = 64 * 2 ** 20;
const LOOK_MS = 250;

async function start(): Promise<void> {
  startTheme();
  const session = new Session();
  const offered = await offeredModels().catch(() => []);
  const models = new ModelsView(session, offered);
  const [first] = offered;
  const load = (): void => {
    if (first) models.load(first.name, first.folders);
  };
  const chat = new ChatView(session, new SettingsView(), load);
  const engine = new EngineView(session);
  session.listen(({ kind }) => {
    if (kind === "ready") say("The model is ready.");
  });
  followHash();
  addEventListener("hashchange", followHash);
  listenToKeys(chat);
  look(session, chat, engine);
  // Service workers exist only on secure pages.
  if ("serviceWorker" in navigator) void navigator.serviceWorker.register("offline.js");
  if (first && (await mayLoad(first))) load();
  else if (first) session.offer(first.name, first.bytes);
}

/** Whether a model may be loaded without asking: it is small, or already stored. */
async function mayLoad({ bytes: size, folders }: OfferedModel): Promise<boolean> {
  if (size <= UNASKED_BYTES) return true;
  const urls = folders.map((folder) => new URL(folder, document.baseURI).href);
  const kept = await (await ModelCache.open()).list();
  return kept.some((one) => urls.includes(one.url) && one.bytes === one.total);
}

/** Show the view that the page's address (hash) names. */
function followHash(): void {
  const visible = location.hash === "#engine" ? "engine" : "chat";
  for (const name of ["chat", "engine"]) {
    byId(name).hidden = name !== visible;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === visible) link?.setAttribute("aria-current", "page");
    else link?.removeAttribute("aria-current");
  }
}

function listenToKeys(chat: ChatView): void {
  document.addEventListener("keydown", (event) => {
    const typing = (event.target as Element).closest("input, textarea, select, dialog");
    if (event.key === "Escape") chat.stop();
    if (event.key === "/" && !typing) {
      event.preventDefault();
      byId("text").focus();
    }
    if (event.key.toLowerCase() === "o" && event.shiftKey && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      chat.fresh();
    }
  });
}

/** Read the engine's counters periodically, and show them. */
function look(session: Session, chat: ChatView, engine: EngineView): void {
  let ticks = 0;
  setInterval(() => {
    const due = ticks++ % (EACH_MS / LOOK_MS) === 0;
    if (session.state.kind !== "ready") {
      describe(byId("numbers"), []);
      if (due) engine.tick(undefined);
      return;
    }
    const { model } = session.state;
    session.engine.stats().then(
      (stats) => {
        if (due) engine.tick(stats);
        engine.show(stats);
        describe(byId("numbers"), [
          ["runs on", placeOf(model)],
          ["speed", chat.lastSpeed ? speed(chat.lastSpeed) : "–"],
          ["memory", bytes(stats.deviceBytes + stats.memoryBytes)],
          ["cache", percent(stats.pagesTotal - stats.pagesFree, stats.pagesTotal)],
          ["prefix hits", percent(stats.cachedTokens, stats.promptTokens)],
        ]);
      },
      () => undefined, // the model was unloaded meanwhile
    );
  }, LOOK_MS);
}

function placeOf({ device, threads }: ModelInfo): string {
  if (device === "webgpu") return "GPU";
  return threads > 1 ? `CPU, ${threads} threads` : "CPU";
}

void start();
