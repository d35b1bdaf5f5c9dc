import { ModelCache } from "../src/index.js";
import type { ModelSource } from "../src/index.js";
import type { OfferedModel } from "./catalog.js";
import { byId, element } from "./dom.js";
import { bytes } from "./format.js";
import type { Session, State } from "./session.js";

type DirectoryPicker = () => Promise<FileSystemDirectoryHandle>;

/** The button with the model's name, and the dialog that it opens to choose a model. */
export class ModelsView {
  readonly #session: Session;
  readonly #offered: readonly OfferedModel[];
  readonly #dialog = byId<HTMLDialogElement>("models-dialog");
  #chosen = "";

  constructor(session: Session, offered: readonly OfferedModel[]) {
    this.#session = session;
    this.#offered = offered;
    session.listen((state) => {
      this.#showState(state);
    });
    byId("models").addEventListener("click", () => {
      void this.#open();
    });
    this.#dialog.querySelector("[data-close]")?.addEventListener("click", () => {
      this.#dialog.close();
    });
    byId("pick").addEventListener("click", () => {
      void this.#pick();
    });
    byId("pick-input").addEventListener("change", (event) => {
      const { files } = event.target as HTMLInputElement;
      if (files && files.length > 0) this.load("your folder", [...files]);
    });
    byId("address").addEventListener("submit", (event) => {
      event.preventDefault();
      const { value } = byId<HTMLInputElement>("address-url");
      this.load(lastPart(value), value);
    });
  }

  /** Load a model and close the dialog. */
  load(name: string, source: ModelSource): void {
    this.#chosen = name;
    this.#dialog.close();
    void this.#session.load(name, source);
  }

  async #pick(): Promise<void> {
    const { showDirectoryPicker } = globalThis as { showDirectoryPicker?: DirectoryPicker };
    if (!showDirectoryPicker) {
      byId("pick-input").click();
      return;
    }
    // undefined if the person cancelled the dialog
    const folder = await showDirectoryPicker().catch(() => undefined);
    if (folder) this.load(folder.name, folder);
  }

  async #open(): Promise<void> {
    this.#dialog.showModal();
    await this.#fill();
  }

  async #fill(): Promise<void> {
    const cache = await ModelCache.open();
    const kept = await cache.list();
    const offered = this.#offered.map(({ name, folders, bytes: size }) => {
      const urls = folders.map((folder) => new URL(folder, document.baseURI).href);
      return { name, urls, size, kept: kept.filter(({ url }) => urls.includes(url)) };
    });
    const known = new Set(offered.flatMap(({ urls }) => urls));
    const others = kept
      .filter(({ url }) => !known.has(url))
      .map((one) => ({ name: one.name, urls: [one.url], size: one.total, kept: [one] }));
    byId("model-list").replaceChildren(
      ...[...offered, ...others].map((model) => this.#row(model, cache)),
    );
    const { used, available } = await cache.room();
    byId("room").textContent =
      used === undefined || available === undefined
        ? ""
        : `This browser keeps ${bytes(used)} for this site, and has room for ${bytes(available)}.`;
  }

  #row(model: Row, cache: ModelCache): HTMLLIElement {
    const complete = model.kept.some((one) => one.bytes === one.total);
    const choose = element(
      "button",
      {
        type: "button",
        class: "choose",
        click: () => {
          this.load(model.name, model.urls);
        },
      },
      element("b", {}, model.name),
      element("span", {}, `${bytes(model.size)}${complete ? " · kept in this browser" : ""}`),
    );
    const row = element("li", model.name === this.#chosen ? { class: "current" } : {}, choose);
    if (model.kept.length === 0) return row;
    const remove = async (): Promise<void> => {
      for (const { url } of model.kept) await cache.remove(url);
      await this.#fill();
    };
    row.append(
      element(
        "button",
        {
          type: "button",
          "aria-label": `Remove ${model.name} from this browser`,
          click: () => {
            void remove();
          },
        },
        "Remove",
      ),
    );
    return row;
  }

  #showState(state: State): void {
    const dot = byId("model-dot");
    dot.className = `dot ${state.kind}`;
    const name =
      state.kind === "ready" ? state.model.name : state.kind === "none" ? "No model" : state.name;
    byId("model-name").textContent = name;
    byId("models").setAttribute("aria-label", `Model: ${name}, ${WORDS[state.kind]}`);
    if (state.kind !== "none") this.#chosen = name;
    document.title = state.kind === "ready" ? `${name} · Wherry` : "Wherry";
  }
}

const WORDS: Readonly<Record<State["kind"], string>> = {
  none: "none is loaded",
  offered: "not loaded yet",
  loading: "loading",
  ready: "ready",
  failed: "failed",
};

interface Row {
  readonly name: string;
  readonly urls: readonly string[];
  readonly size: number;
  readonly kept: readonly {
    readonly url: string;
    readonly bytes: number;
    readonly total: number;
  }[];
}

function lastPart(url: string): string {
  return new URL(url).pathname.split("/").filter(Boolean).at(-1) ?? url;
}
