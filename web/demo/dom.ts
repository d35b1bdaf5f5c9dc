type Attributes = Readonly<Record<string, string | EventListener>>;
type Child = string | Node;

/**
 * Create an HTML element; attributes that are functions become listeners of the event of that name.
 */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") created.addEventListener(name, value);
    else created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
}

const SVG = "http://www.w3.org/2000/svg";

/** Create an SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | number>> = {},
  ...children: readonly Node[]
): SVGElementTagNameMap[K] {
  const created = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, String(value));
  created.append(...children);
  return created;
}

/** Create an icon of 24 by 24, drawn by a line. */
export function icon(path: string): SVGSVGElement {
  const drawing = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
  drawing.append(svg("path", { d: path }));
  return drawing;
}

/** Return the page's element with an id. */
// The caller states the type of the element, because the compiler cannot know it.
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const match = document.getElementById(id);
  if (!match) throw new Error(`the page has no #${id}`);
  return match as T;
}

/** Fill a description list with rows; unchanged rows are not touched. */
export function describe(list: HTMLElement, rows: readonly (readonly [string, string])[]): void {
  const key = rows.map(([name]) => name).join("\n");
  if (list.dataset["rows"] !== key) {
    list.dataset["rows"] = key;
    list.replaceChildren(
      ...rows.map(([name]) => element("div", {}, element("dt", {}, name), element("dd"))),
    );
  }
  list.querySelectorAll("dd").forEach((cell, index) => {
    const [value = "", unit] = (rows[index]?.[1] ?? "").split("\u202f");
    if (cell.dataset["value"] === value + (unit ?? "")) return;
    cell.dataset["value"] = value + (unit ?? "");
    cell.replaceChildren(value, ...(unit ? [element("small", {}, unit)] : []));
  });
}

/** Announce a text to people who use a screen reader. */
export function say(text: string): void {
  byId("said").textContent = text;
}
