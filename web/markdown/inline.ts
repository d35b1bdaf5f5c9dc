/**
 * Parses Markdown within a line: emphasis, code, links, formulas. Each character is examined only a
 * few times.
 */
import { html, link } from "./elements.js";
import { formula } from "./tex.js";

const PLAIN = /(?:(?!https?:\/\/)[^\\`*_~$[\]!<&\n])+/y;
const ADDRESS = /https?:\/\/[^\s<>"`]+/y;
const ANGLE = /<(?:br\s*\/?|((?:https?:\/\/|mailto:)[^\s<>]*))>/iy;
const ENTITY = /&(amp|lt|gt|quot|nbsp|#39);/y;
const TARGET =
  /\(\s{0,9}(?:<([^<>\n]{0,1000})>|([^\s<>]{0,1000}?))(?:\s{1,9}(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'))?\s{0,9}\)/y;
const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  nbsp: "\u00a0",
  "#39": "'",
};
const DEEPEST = 12; // maximum nesting depth of elements
const OPEN = 100; // maximum number of opening marks that wait for their ends

/** A mark that may begin an emphasis, or the opening bracket of a link. */
interface Opener {
  readonly mark: string;
  readonly at: number; // index of the mark among the nodes
}

/** Append the nodes of a text to an element. */
export function inline(text: string, into: Node): void {
  for (const node of new Inline(text).nodes()) into.appendChild(node);
}

class Inline {
  readonly #text: string;
  #at = 0;
  readonly #nodes: Node[] = [];
  #words = ""; // text that has not become a node yet
  #openers: Opener[] = [];
  readonly #absent = new Set<string>(); // end marks that do not occur in the rest of the text
  readonly #depths = new WeakMap<Node, number>();

  constructor(text: string) {
    this.#text = text;
  }

  nodes(): Node[] {
    while (this.#at < this.#text.length) {
      const plain = this.#match(PLAIN);
      if (plain) this.#say(plain[0]);
      else this.#special();
    }
    this.#add(undefined);
    return this.#nodes;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match) this.#at = pattern.lastIndex;
    return match;
  }

  #say(text: string): void {
    this.#words += text;
  }

  #add(node: Node | undefined): void {
    if (this.#words) this.#nodes.push(document.createTextNode(this.#words));
    this.#words = "";
    if (node) this.#nodes.push(node);
  }

  #special(): void {
    switch (this.#text[this.#at]) {
      case "\\":
        return this.#backslash();
      case "`":
        return this.#code();
      case "$":
        return this.#dollar();
      case "*":
      case "_":
      case "~":
        return this.#marks();
      case "[":
        return this.#open("[");
      case "!":
        return this.#text[this.#at + 1] === "[" ? this.#open("![") : this.#literally(1);
      case "]":
        return this.#bracket();
      case "<":
        return this.#angle();
      case "&":
        return this.#entity();
      case "\n":
        this.#at += 1;
        this.#add(html("br"));
        return;
      default:
        return this.#address();
    }
  }

  #literally(length: number): void {
    this.#say(this.#text.slice(this.#at, this.#at + length));
    this.#at += length;
  }

  #backslash(): void {
    const next = this.#text[this.#at + 1] ?? "";
    if (next === "(" || next === "[") {
      const inside = this.#until(next === "(" ? "\\)" : "\\]", 2);
      if (inside !== undefined) {
        this.#add(formula(inside, next === "["));
        return;
      }
    }
    if (next === "\n") this.#at += 1;
    else if (/[!-/:-@[-`{-~]/.test(next)) {
      this.#at += 1;
      this.#literally(1);
    } else this.#literally(1);
  }

  /** The text up to an end mark, which is skipped; undefined if the mark does not occur. */
  #until(end: string, skip: number): string | undefined {
    if (this.#absent.has(end)) return undefined;
    const from = this.#at + skip;
    const to = this.#text.indexOf(end, from);
    if (to < 0) this.#absent.add(end);
    if (to < 0 || to === from) return undefined;
    this.#at = to + end.length;
    return this.#text.slice(from, to);
  }

  #run(): string {
    let end = this.#at;
    while (this.#text[end] === this.#text[this.#at]) end += 1;
    return this.#text.slice(this.#at, end);
  }

  #code(): void {
    const mark = this.#run();
    const end = this.#absent.has(mark) ? -1 : this.#endOf(mark);
    if (end < 0) return this.#literally(mark.length);
    const inside = this.#text.slice(this.#at + mark.length, end).replaceAll("\n", " ");
    this.#at = end + mark.length;
    this.#add(html("code", "", inside.replace(/^ (.*\S.*) $/, "$1")));
  }

  /** Find the position with exactly as many marks as here; -1 if there is none. */
  #endOf(mark: string): number {
    for (let at = this.#at + mark.length; ;) {
      const from = this.#text.indexOf(mark, at);
      if (from < 0) {
        this.#absent.add(mark);
        return -1;
      }
      at = from + mark.length;
      while (this.#text[at] === "`") at += 1;
      if (at === from + mark.length) return from;
    }
  }

  /** Read a formula between dollar signs: `$x$` is one, `$5 and $6` is none. */
  #dollar(): void {
    const display = this.#text[this.#at + 1] === "$";
    const mark = display ? "$$" : "$";
    const before = this.#at;
    const inside = this.#until(mark, mark.length);
    const fits =
      inside !== undefined &&
      (display || (!/^\s|\s$|\\$|\n\s*\n/.test(inside) && !/\d/.test(this.#text[this.#at] ?? "")));
    if (fits) {
      this.#add(formula(inside, display));
      return;
    }
    this.#at = before;
    this.#literally(mark.length);
  }

  #open(mark: string): void {
    this.#push(mark);
    this.#at += mark.length;
  }

  #push(mark: string): void {
    if (this.#openers.length === OPEN) return this.#say(mark);
    this.#add(document.createTextNode(mark));
    this.#openers.push({ mark, at: this.#nodes.length - 1 });
  }

  #marks(): void {
    const run = this.#run();
    const mark = run[0] ?? "";
    const before = this.#text[this.#at - 1] ?? " ";
    const after = this.#text[this.#at + run.length] ?? " ";
    this.#at += run.length;
    if (run.length > 3 || (mark === "~" && run.length !== 2)) return this.#say(run);
    const word = /[\p{L}\p{N}]/u;
    // underscores inside of a word, as in snake_case, are no emphasis
    const inside = mark === "_" && word.test(before) && word.test(after);
    let left = run.length;
    if (!/\s/.test(before) && !inside) left = this.#close(mark, left);
    if (left === 0) return;
    const open = mark.repeat(left);
    if (/\s/.test(after) || inside) this.#say(open);
    else this.#push(open);
  }

  /** End emphases with at most this number of marks; return the number of unused marks. */
  #close(mark: string, left: number): number {
    while (left > 0) {
      const index = this.#openers.findLastIndex((one) => one.mark.startsWith(mark));
      const opener = this.#openers[index];
      const bracket = this.#openers.findLastIndex((one) => one.mark.endsWith("["));
      if (!opener || index < bracket) return left;
      const used = mark === "~" ? 2 : Math.min(left, opener.mark.length, 2);
      this.#openers.length = index;
      const tag = mark === "~" ? "del" : used === 2 ? "strong" : "em";
      const rest = opener.mark.slice(used);
      if (!this.#wrap(opener.at, html(tag), rest)) return left;
      if (rest) this.#openers.push({ mark: rest, at: opener.at });
      left -= used;
    }
    return 0;
  }

  /** Move the nodes after a mark into an element; false if they are nested too deep. */
  #wrap(at: number, element: HTMLElement, rest = ""): boolean {
    this.#add(undefined);
    const inside = this.#nodes.slice(at + 1);
    const depth = inside.reduce((most, one) => Math.max(most, this.#depths.get(one) ?? 0), 0) + 1;
    if (inside.length === 0 || depth > DEEPEST) return false;
    this.#nodes.length = at;
    if (rest) this.#nodes.push(document.createTextNode(rest));
    for (const one of inside) element.appendChild(one);
    this.#depths.set(element, depth);
    this.#nodes.push(element);
    return true;
  }

  #bracket(): void {
    const index = this.#openers.findLastIndex((one) => one.mark.endsWith("["));
    const opener = this.#openers[index];
    const start = this.#at;
    this.#at += 1;
    const target = opener && this.#match(TARGET);
    if (opener) this.#openers.length = index;
    const anchor = target && link(target[1] ?? target[2] ?? "");
    // pictures become links, so that the page fetches none
    if (opener && anchor && this.#wrap(opener.at, anchor)) return;
    this.#at = start;
    this.#literally(1);
  }

  #angle(): void {
    const match = this.#match(ANGLE);
    if (!match) return this.#literally(1);
    const [all, address] = match;
    if (/^<br/i.test(all)) this.#add(html("br"));
    else this.#add(linked(address ?? "", address ?? ""));
  }

  #entity(): void {
    const match = this.#match(ENTITY);
    if (match) this.#say(ENTITIES[match[1] ?? ""] ?? "");
    else this.#literally(1);
  }

  #address(): void {
    const match = this.#match(ADDRESS);
    if (!match) return this.#literally(1);
    const address = trimmed(match[0]);
    this.#at -= match[0].length - address.length;
    this.#add(linked(address, address));
  }
}

function linked(address: string, text: string): Node {
  const anchor = link(address);
  anchor?.append(text);
  return anchor ?? document.createTextNode(text);
}

/** Return the address without the punctuation of the surrounding sentence. */
function trimmed(address: string): string {
  const end = /[*_~.,;:!?'\]}]*$/;
  let shortened = address.slice(0, 2000).replace(end, "");
  while (shortened.endsWith(")") && shortened.split(")").length > shortened.split("(").length)
    shortened = shortened.slice(0, -1).replace(end, "");
  return shortened;
}
