/** Parses and draws tables of Markdown. */
import { html } from "./elements.js";
import { inline } from "./inline.js";

const DELIMITERS = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const CELLS = 64; // maximum number of cells in a row

/** Split a line at its bars into cells; bars in code or after a backslash do not count. */
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

/**
 * Alignment of each column if this is the line below a table's head ("": default); else undefined.
 */
export function sidesOf(head: string, line: string): string[] | undefined {
  if (!DELIMITERS.test(line) || !(line + head).includes("|")) return undefined;
  const marks = cellsOf(line);
  if (marks.length !== cellsOf(head).length) return undefined;
  return marks.map((mark) => {
    if (!mark.endsWith(":")) return mark.startsWith(":") ? "left" : "";
    return mark.startsWith(":") ? "center" : "right";
  });
}

/** Create a table; return it with the element to which its rows are appended. */
export function tableOf(
  head: readonly string[],
  sides: readonly string[],
): [HTMLElement, HTMLElement] {
  const body = html("tbody");
  const table = html("table", "", html("thead", "", rowOf("th", head, sides)), body);
  const box = html("div", "table", table);
  box.tabIndex = 0; // lets the keyboard scroll a table that is wider than the page
  box.role = "group";
  box.ariaLabel = "Table";
  return [box, body];
}

/** Create a row with one cell for each column. */
export function rowOf(
  tag: "th" | "td",
  cells: readonly string[],
  sides: readonly string[],
): HTMLTableRowElement {
  const row = sides.map((side, at) => {
    const cell = html(tag, side);
    inline(cells[at] ?? "", cell);
    return cell;
  });
  return html("tr", "", ...row);
}
