import { byId } from "./dom.js";

const KEY = "wherry.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Choose a dark or light theme: the system's, until the person chooses one. */
export function startTheme(): void {
  const button = byId<HTMLButtonElement>("theme");
  button.addEventListener("click", () => {
    localStorage.setItem(KEY, theme() === "dark" ? "light" : "dark");
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}

function theme(): string {
  return localStorage.getItem(KEY) ?? (dark.matches ? "dark" : "light");
}

function apply(): void {
  const now = theme();
  document.documentElement.dataset["theme"] = now;
  const { backgroundColor } = getComputedStyle(document.querySelector("header") ?? document.body);
  document.querySelector("meta[name=theme-color]")?.setAttribute("content", backgroundColor);
  byId("theme").setAttribute("aria-label", now === "dark" ? "Light colours" : "Dark colours");
}
