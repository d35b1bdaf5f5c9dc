import { byId } from "./dom.js";

const NUMBERS = ["temperature", "max_tokens", "seed"] as const;
const KEY = "wherry.settings";

/** The person's settings for all answers; a missing setting means the model's default. */
export interface Settings {
  readonly system?: string;
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly seed?: number;
}

/** The dialog with the settings, and the button with two sliders that opens it. */
export class SettingsView {
  readonly #dialog = byId<HTMLDialogElement>("tune-dialog");
  settings: Settings = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Settings;

  constructor() {
    byId("tune").addEventListener("click", () => {
      byId<HTMLTextAreaElement>("system").value = this.settings.system ?? "";
      for (const name of NUMBERS) field(name).value = String(this.settings[name] ?? "");
      this.#dialog.showModal();
    });
    // Not at "close", which comes some time after the dialog is gone.
    this.#dialog.addEventListener("input", () => {
      this.#take();
    });
  }

  #take(): void {
    const system = byId<HTMLTextAreaElement>("system").value.trim();
    const numbers = NUMBERS.map((name) => [name, field(name).valueAsNumber] as const);
    const typed = numbers.filter(([, value]) => Number.isFinite(value));
    this.settings = { ...(system && { system }), ...(Object.fromEntries(typed) as Settings) };
    sessionStorage.setItem(KEY, JSON.stringify(this.settings));
  }
}

function field(name: string): HTMLInputElement {
  return byId<HTMLInputElement>(name);
}
