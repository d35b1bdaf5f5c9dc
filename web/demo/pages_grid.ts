import { byId, element } from "./dom.js";

const MOST_CELLS = 320;

/** Shows the use of the KV cache as cells: each cell is one page, or several if there are many. */
export class PagesGrid {
  readonly #place: HTMLElement;

  constructor(place: HTMLElement) {
    this.#place = place;
    place.setAttribute("role", "img");
  }

  /**
   * Show the use of the KV cache.
   *
   * @param used number of pages of running requests.
   * @param kept number of pages with cached prefixes that no request uses now.
   * @param total number of pages in all.
   * @param size tokens of a page.
   */
  show(used: number, kept: number, total: number, size: number): void {
    const each = Math.max(1, Math.ceil(total / MOST_CELLS));
    const cells = Math.ceil(total / each);
    while (this.#place.childElementCount > cells) this.#place.lastElementChild?.remove();
    while (this.#place.childElementCount < cells) this.#place.append(element("i"));
    this.#place.style.setProperty("--cell", cells > 100 ? "17px" : "26px");
    const usedCells = Math.ceil(used / each);
    const keptCells = Math.ceil((used + kept) / each);
    for (const [index, cell] of [...this.#place.children].entries()) {
      const kind = index < usedCells ? "used" : index < keptCells ? "kept" : "";
      if (cell.className !== kind) cell.className = kind;
    }
    byId("pages-note").textContent =
      `${total} pages of ${size} tokens` + (each > 1 ? `, ${each} per square` : "");
    const free = total - used - kept;
    this.#place.setAttribute(
      "aria-label",
      `Pages of the cache: ${used} in use, ${kept} with kept prefixes, ${free} free`,
    );
  }
}
