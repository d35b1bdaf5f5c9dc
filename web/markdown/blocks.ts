/** Parses Markdown's blocks line by line: each line is read once, however long the text becomes. */
import { Colours } from "./colours.js";
import { copyButton, html } from "./elements.js";
import { inline } from "./inline.js";
import { cellsOf, rowOf, sidesOf, tableOf } from "./table.js";
import { formula } from "./tex.js";

const QUOTE = /^[ \t]*>[ \t]?/;
const FENCE = /^(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`]*$/;
const HEADING = /^(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^(?:\*[ \t]*){3,}$|^(?:-[ \t]*){3,}$|^(?:_[ \t]*){3,}$/;
const MARKER = /^(?:[-*+]|(\d{1,9})[.)])(?:[ \t]|$)/;
const MATHS = /^(?:\$\$|\\\[|\\begin\{((?:equation|align|alignat|gather|multline|eqnarray)\*?)\})/;
const DEEPEST = 24; // maximum nesting depth of lists, their items and quotes

/** A block that contains other blocks: a quote, a list or an item. */
interface Frame {
  readonly kind: "page" | "quote" | "bullets" | "numbers" | "item";
  readonly element: HTMLElement;
  readonly column: number; // column of the item's marker
}

/** The kinds of block to which the next line may belong. */
type Leaf =
  | { readonly kind: "paragraph"; readonly element: HTMLElement; readonly text: string }
  | {
      readonly kind: "code";
      readonly end: string;
      readonly column: number;
      readonly element: HTMLElement;
      readonly colours: Colours;
    }
  | {
      readonly kind: "maths";
      readonly end: string;
      readonly element: HTMLElement;
      readonly text: string;
    }
  | { readonly kind: "table"; readonly body: HTMLElement; readonly sides: readonly string[] };

/** A snapshot of the state before a line, from which the line can be undone. */
interface Mark {
  readonly frames: readonly Frame[];
  readonly counts: readonly number[]; // number of children of each frame
  readonly leaf: Leaf | undefined;
  readonly size: number; // number of parts in a code block, or of rows in a table
  readonly open: Colours["open"]; // what a code block's last line has left open
  readonly blank: boolean;
}

/** Draws lines of Markdown into an element; the last line can be undone. */
export class Blocks {
  readonly #page: Frame;
  #frames: readonly Frame[];
  #leaf: Leaf | undefined;
  #undrawn = ""; // lines of the code block that are not drawn yet
  #blank = false; // whether the last line was blank

  constructor(page: HTMLElement) {
    this.#page = { kind: "page", element: page, column: 0 };
    this.#frames = [this.#page];
  }

  /** Take a snapshot of the state, before a line that is not complete yet. */
  mark(): Mark {
    const leaf = this.#leaf;
    if (leaf?.kind === "code") this.draw();
    const size =
      leaf?.kind === "code"
        ? leaf.element.childNodes.length
        : leaf?.kind === "table"
          ? leaf.body.childElementCount
          : 0;
    const counts = this.#frames.map(({ element }) => element.childNodes.length);
    const open = leaf?.kind === "code" ? leaf.colours.open : undefined;
    return { frames: this.#frames, counts, leaf, size, open, blank: this.#blank };
  }

  /** Undo all changes since a snapshot. */
  back({ frames, counts, leaf, size, open, blank }: Mark): void {
    frames.forEach(({ element }, at) => cut(element, counts[at] ?? 0));
    [this.#frames, this.#leaf, this.#blank, this.#undrawn] = [frames, leaf, blank, ""];
    if (leaf?.kind === "code") {
      cut(leaf.element, size);
      leaf.colours.open = open;
    } else if (leaf?.kind === "table") cut(leaf.body, size);
    else if (leaf && !leaf.element.parentNode)
      this.#top.element.lastChild?.replaceWith(leaf.element);
  }

  /** Draw a complete line, given without its line end. */
  line(line: string): void {
    const text = line.trimEnd();
    if (this.#leaf?.kind === "code" && this.#codeLine(line)) return;
    const [kept, rest] = this.#enclosed(text);
    const lazy = kept < this.#frames.length && this.#leaf?.kind === "paragraph" && !this.#blank;
    this.#blank = rest.trim() === "";
    if (lazy && !this.#blank && !this.#begins(rest.trimStart(), this.#frames[kept - 1]))
      return this.#say(rest.trim());
    if (kept < this.#frames.length) this.#close();
    this.#frames = this.#frames.slice(0, kept);
    if (this.#leaf?.kind === "maths") this.#mathsLine(rest.trim());
    else if (this.#blank) this.#close();
    else this.#begin(rest);
  }

  /** Draw the lines of an open block that are not drawn yet. */
  draw(): void {
    const leaf = this.#leaf;
    if (leaf?.kind === "code") this.#drawCode(leaf);
    this.#undrawn = "";
    if (leaf?.kind !== "paragraph" && leaf?.kind !== "maths") return;
    leaf.element.replaceChildren();
    if (leaf.kind === "paragraph") inline(leaf.text, leaf.element);
    else leaf.element.append(html("code", "", leaf.text));
  }

  #drawCode({ element, colours }: Extract<Leaf, { kind: "code" }>): void {
    for (const line of this.#undrawn.match(/[^\n]*\n/g) ?? []) {
      for (const [kind, text] of colours.parts(line))
        element.append(kind === "" ? text : html("span", kind, text));
    }
  }

  get #top(): Frame {
    return this.#frames[this.#frames.length - 1] ?? this.#page;
  }

  #close(): void {
    if (this.#leaf?.kind === "maths") {
      const { element, text } = this.#leaf; // the formula was never closed, so it was no formula
      this.#leaf = { kind: "paragraph", element, text };
    }
    this.draw();
    this.#leaf = undefined;
  }

  #add(element: Node): void {
    this.#close();
    if (this.#top.kind === "bullets" || this.#top.kind === "numbers")
      this.#frames = this.#frames.slice(0, -1);
    this.#top.element.append(element);
  }

  #push(kind: Frame["kind"], element: HTMLElement, column = 0): void {
    this.#top.element.append(element);
    this.#frames = [...this.#frames, { kind, element, column }];
  }

  /** Find how many frames a line continues, and the rest of its text inside of them. */
  #enclosed(line: string): [number, string] {
    let rest = line;
    let kept = 1;
    for (const { kind, column } of this.#frames.slice(1)) {
      if (kind === "quote") {
        const match = QUOTE.exec(rest);
        if (!match) break;
        rest = rest.slice(match[0].length);
      } else if (kind === "item" && rest.trim() !== "" && indent(rest) < column + 2) break;
      kept += 1;
    }
    return [kept, rest];
  }

  /** Whether a line begins a new block where a paragraph might continue. */
  #begins(text: string, frame: Frame | undefined): boolean {
    const marker = MARKER.exec(text);
    if (marker && (frame?.kind === "numbers" || interrupts(marker, text))) return true;
    return [QUOTE, FENCE, HEADING, RULE].some((pattern) => pattern.test(text));
  }

  #begin(line: string): void {
    let rest = line;
    for (;;) {
      const text = rest.trimStart();
      const column = indent(rest);
      const quote = QUOTE.exec(rest);
      const deep = this.#frames.length >= DEEPEST;
      if (quote && !deep) {
        this.#add(html("blockquote"));
        const element = this.#top.element.lastChild as HTMLElement;
        this.#frames = [...this.#frames, { kind: "quote", element, column: 0 }];
        rest = rest.slice(quote[0].length);
      } else if (RULE.test(text)) return this.#add(html("hr"));
      else {
        const marker = deep ? null : this.#marker(text);
        if (!marker) return this.#block(text, column);
        this.#item(marker, column);
        rest = " ".repeat(column + marker[0].length) + checked(text.slice(marker[0].length));
      }
      if (rest.trim() === "") return;
    }
  }

  #marker(text: string): RegExpExecArray | null {
    const match = MARKER.exec(text);
    if (!match || this.#leaf?.kind !== "paragraph") return match;
    return interrupts(match, text) ? match : null;
  }

  #item(marker: RegExpExecArray, column: number): void {
    const kind = marker[1] === undefined ? "bullets" : "numbers";
    this.#close();
    if (this.#top.kind !== kind) {
      const list = html(marker[1] === undefined ? "ul" : "ol");
      if (marker[1] !== undefined && marker[1] !== "1") list.setAttribute("start", marker[1]);
      this.#add(list);
      this.#frames = [...this.#frames, { kind, element: list, column }];
    }
    this.#push("item", html("li"), column);
  }

  #block(text: string, column: number): void {
    const fence = FENCE.exec(text);
    if (fence) return this.#code(fence[1] ?? "", fence[2] ?? "", column);
    const heading = HEADING.exec(text);
    if (heading) return this.#heading(heading[1]?.length ?? 1, heading[2] ?? "");
    if (this.#leaf?.kind === "table") {
      if (text.includes("|")) {
        this.#leaf.body.append(rowOf("td", cellsOf(text), this.#leaf.sides));
        return;
      }
      this.#close();
    }
    if (this.#maths(text)) return;
    this.#say(text);
  }

  #heading(level: number, text: string): void {
    const heading = html(`h${Math.min(6, level + 2)}` as "h3");
    inline(text.replace(/(^|[ \t])#+$/, ""), heading);
    this.#add(heading);
  }

  #say(text: string): void {
    const leaf = this.#leaf;
    if (leaf?.kind !== "paragraph") {
      const element = html("p");
      this.#add(element);
      this.#leaf = { kind: "paragraph", element, text };
      return;
    }
    const head = leaf.text;
    const sides = text.includes("-") && !head.includes("\n") ? sidesOf(head, text) : undefined;
    if (!sides) {
      this.#leaf = { ...leaf, text: `${leaf.text}\n${text}` };
      return;
    }
    const [table, body] = tableOf(cellsOf(head), sides);
    leaf.element.replaceWith(table);
    this.#leaf = { kind: "table", body, sides };
  }

  #code(mark: string, language: string, column: number): void {
    const element = html("code");
    const bar = html("div", "bar", html("span", "", language || "text"));
    const button = copyButton(() => element.textContent.replace(/\n$/, ""));
    bar.append(button);
    const pre = html("pre", "", element);
    pre.tabIndex = 0;
    this.#add(html("div", "block", bar, pre));
    this.#leaf = { kind: "code", end: mark, column, element, colours: new Colours(language) };
  }

  /** Add a line to an open code block; false if no code block is open. */
  #codeLine(line: string): boolean {
    const leaf = this.#leaf;
    if (leaf?.kind !== "code") return false;
    let rest = line;
    for (const { kind } of this.#frames) {
      if (kind !== "quote") continue;
      const match = QUOTE.exec(rest);
      if (!match) return false;
      rest = rest.slice(match[0].length);
    }
    const text = rest.trim();
    if (text.startsWith(leaf.end) && text === (leaf.end[0] ?? "").repeat(text.length))
      this.#close();
    else {
      this.#undrawn += `${rest.slice(Math.min(leaf.column, indent(rest)))}\n`;
    }
    return true;
  }

  /** Read a formula on lines of its own; false if the line is no formula. */
  #maths(text: string): boolean {
    const match = MATHS.exec(text);
    if (!match || this.#leaf?.kind === "paragraph") return false;
    const [begin, environment] = match;
    const end = environment ? `\\end{${environment}}` : begin === "$$" ? "$$" : "\\]";
    const at = text.indexOf(end, begin.length);
    if (at >= 0 && !/^[.,;]?$/.test(text.slice(at + end.length))) return false;
    const element = html("p");
    this.#add(element);
    this.#leaf = { kind: "maths", end, element, text: "" };
    this.#mathsLine(text, at);
    return true;
  }

  #mathsLine(text: string, at = text.indexOf((this.#leaf as { end: string }).end)): void {
    const leaf = this.#leaf;
    if (leaf?.kind !== "maths") return;
    if (text === "") return this.#close();
    const complete = leaf.text ? `${leaf.text}\n${text}` : text;
    this.#leaf = { ...leaf, text: complete };
    if (at < 0) return;
    const own = leaf.end.startsWith("\\end"); // the environment's end is a part of the formula
    const inside = own ? complete : complete.slice(2, complete.lastIndexOf(leaf.end));
    leaf.element.replaceChildren(
      formula(inside, true),
      complete.slice(complete.lastIndexOf(leaf.end) + leaf.end.length),
    );
    this.#leaf = undefined;
  }
}

/** Whether a list item may interrupt a paragraph; "1986. A year" may not. */
function interrupts(marker: RegExpExecArray, text: string): boolean {
  return text.length > marker[0].length && (marker[1] ?? "1") === "1";
}

function cut(element: HTMLElement, count: number): void {
  while (element.childNodes.length > count) element.lastChild?.remove();
}

/** Number of columns before a line's text; a tab advances to the next multiple of four. */
function indent(line: string): number {
  let column = 0;
  for (const character of line) {
    if (character === " ") column += 1;
    else if (character === "\t") column += 4 - (column % 4);
    else break;
  }
  return column;
}

/** Replace the brackets of a task list item by a check box character. */
function checked(text: string): string {
  return text.replace(/^\[([ xX])\](?=\s)/, (_, mark: string) => (mark === " " ? "☐" : "☑"));
}
