/** Tables of Markdown. */
import { html } from "./elements.js";
import { inline } from "./inline.js";

const DELIMITERS = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const CELLS = 64; // of a row

/** The texts between the bars of a line; those in code, and after a backslash, are none. */
export function cellsOf(line: string): string[] {
  const text = line.replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  const cells: string[] = [];
  let from = 0;
  let code = false;
  for (let at = 0; at < text.length && cells.length < CELLS; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "`") code = !code && text.includes("`", at + 1);
    else if (text[at] === "|" && !code) {
      cells.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...cells, text.slice(from)].map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** To which side each column goes, if this is the line below a head; "" is the usual one. */
export function sidesOf(head: string, line: string): string[] | undefined {
  if (!DELIMITERS.test(line) || !(line + head).includes("|")) return undefined;
  const marks = cellsOf(line);
  if (marks.length !== cellsOf(head).length) return undefined;
  return marks.map((mark) => {
    if (!mark.endsWith(":")) return mark.startsWith(":") ? "left" : "";
    return mark.startsWith(":") ? "center" : "right";
  });
}

/** A table, and what its rows are appended to. */
export function tableOf(
  head: readonly string[],
  sides: readonly string[],
): [HTMLElement, HTMLElement] {
  const body = html("tbody");
  const table = html("table", "", html("thead", "", rowOf("th", head, sides)), body);
  const box = html("div", "table", table);
  box.tabIndex = 0; // what is wider than its place is scrolled by keys, too
  box.role = "group";
  box.ariaLabel = "Table";
  return [box, body];
}

/** A row with as many cells as there are columns. */
export function rowOf(
  tag: "th" | "td",
  cells: readonly string[],
  sides: readonly string[],
): HTMLTableRowElement {
  const made = sides.map((side, at) => {
    const cell = html(tag, side);
    inline(cells[at] ?? "", cell);
    return cell;
  });
  return html("tr", "", ...made);
}
