/** Converts TeX, as far as models write it, to MathML, which browsers show with their own fonts. */
import { html } from "./elements.js";
import { fence, node, row, set } from "./mathml.js";
import {
  ACCENTS,
  ALPHABETS,
  BELOW,
  BIG,
  ENVIRONMENTS,
  LETTERS,
  LIMITS,
  NAMES,
  OLDER,
  OPERATORS,
  SPACES,
} from "./tex_symbols.js";

const LONGEST = 5000; // maximum number of characters in a formula
const DEEPEST = 40; // maximum nesting depth of groups
const TOKEN = /\\(?:[A-Za-z]+\*?|[^])|[^\\\s%]|%[^\n]*\n?|\s+/gu;
const SKIPPED = new Set(
  "displaystyle textstyle scriptstyle limits nolimits nonumber notag hline big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm middle".split(
    " ",
  ),
);

/** Thrown for a formula that cannot be parsed; its text is then shown unchanged. */
class Unreadable extends Error {}

/**
 * Convert a formula to nodes.
 *
 * @param display whether the formula is on a line of its own.
 */
export function formula(text: string, display: boolean): Node {
  try {
    if (text.length > LONGEST) throw new Unreadable();
    const math = new Tex(text).formula();
    if (display) math.setAttribute("display", "block");
    if (!display) return math;
    const box = html("span", "math", math);
    box.tabIndex = 0; // lets the keyboard scroll a formula that is wider than the page
    return box;
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return html("code", "", text.trim());
  }
}

class Tex {
  readonly #tokens: string[];
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#tokens = (text.match(TOKEN) ?? []).filter((token) => !token.startsWith("%"));
  }

  formula(): Element {
    const rows = this.#table(undefined, "");
    if (this.#at < this.#tokens.length) throw new Unreadable();
    return node("math", rows);
  }

  #skipSpaces(): void {
    while (/^\s/.test(this.#tokens[this.#at] ?? "")) this.#at += 1;
  }

  #peek(): string | undefined {
    this.#skipSpaces();
    return this.#tokens[this.#at];
  }

  #next(): string {
    const token = this.#peek();
    if (token === undefined) throw new Unreadable();
    this.#at += 1;
    return token;
  }

  #take(token: string): boolean {
    if (this.#peek() !== token) return false;
    this.#at += 1;
    return true;
  }

  /** Parse elements until one of these tokens, which is not consumed. */
  #until(...ends: readonly string[]): Element[] {
    if ((this.#depth += 1) > DEEPEST) throw new Unreadable();
    const elements: Element[] = [];
    for (let token = this.#peek(); token !== undefined; token = this.#peek()) {
      if (ends.includes(token) || token === "}" || token === "&" || token === "\\\\") break;
      if (token === "\\end" || token === "\\right") break;
      const one = this.#scripted();
      if (one) elements.push(one);
    }
    this.#depth -= 1;
    return elements;
  }

  /** Parse one atom with its subscript and superscript. */
  #scripted(): Element | undefined {
    const token = this.#peek() ?? "";
    const base = token === "^" || token === "_" ? node("mrow") : this.#atom();
    if (!base) return undefined;
    let below: Element | undefined;
    let above: Element | undefined;
    for (;;) {
      if (this.#take("\\limits") || this.#take("\\nolimits")) continue;
      if (!below && this.#take("_")) below = this.#argument();
      else if (!above && this.#take("^")) above = this.#argument();
      else if (this.#peek() === "'") above = this.#primes(above);
      else break;
    }
    if (!below && !above) return base;
    const [under, over] = base.hasAttribute("data-limits") ? ["under", "over"] : ["sub", "sup"];
    if (below && above) return node(`m${under}${over}`, base, below, above);
    return node(`m${below ? under : over}`, base, below ?? above ?? "");
  }

  #primes(above: Element | undefined): Element {
    let marks = "";
    while (this.#take("'")) marks += "′";
    const primes = node("mo", marks);
    if (this.#take("^")) return row([primes, this.#argument()]);
    return above ? row([above, primes]) : primes;
  }

  /** Parse an argument: a group, or a single token in its place. */
  #argument(): Element {
    if (this.#take("{")) return this.#group();
    if ((this.#depth += 1) > DEEPEST) throw new Unreadable();
    const one = this.#atom() ?? node("mrow");
    this.#depth -= 1;
    return one;
  }

  #group(): Element {
    const inside = this.#until("}");
    if (!this.#take("}")) throw new Unreadable();
    return row(inside);
  }

  #atom(): Element | undefined {
    const token = this.#next();
    if (token === "{") return this.#group();
    if (token.startsWith("\\")) return this.#command(token.slice(1));
    if (/[0-9]/.test(token)) return node("mn", token + this.#digits());
    if (/[\p{L}\p{N}]/u.test(token)) return node("mi", token);
    if (token === "~") return set(node("mspace"), { width: "0.33em" });
    if ("()[]|".includes(token)) return fence(token, false);
    return node("mo", { "-": "−", "*": "∗", "'": "′" }[token] ?? token);
  }

  #digits(): string {
    let digits = "";
    for (;;) {
      const [token = "", after = ""] = this.#tokens.slice(this.#at, this.#at + 2);
      if (!/^[0-9]$/.test(token) && !(/^[.,]$/.test(token) && /^[0-9]$/.test(after))) return digits;
      digits += token;
      this.#at += 1;
    }
  }

  #command(name: string): Element | undefined {
    const letter = LETTERS.get(name);
    if (letter !== undefined) return node("mi", letter);
    const operator = OPERATORS.get(name);
    if (operator !== undefined)
      return /[⟨⟩⌊⌋⌈⌉|‖{}[\]]/.test(operator) ? fence(operator, false) : node("mo", operator);
    const big = BIG.get(name);
    if (big !== undefined)
      return set(node("mo", big), { "data-limits": "", movablelimits: "true" });
    if (NAMES.has(name)) return this.#named(name, LIMITS.has(name));
    const space = SPACES.get(name);
    if (space !== undefined) return set(node("mspace"), { width: `${space}em` });
    if (ALPHABETS.has(name)) return this.#alphabet(name);
    if (ACCENTS.has(name) || BELOW.has(name)) return this.#accented(name);
    if (SKIPPED.has(name)) return undefined;
    return this.#construct(name);
  }

  #named(name: string, limits: boolean): Element {
    const word = name.replace(/^(arg|lim)(?=max|min|sup|inf)/, "$1\u2009");
    const space = this.#peek() === "(" ? "0" : "0.17em";
    const operator = set(node("mo", word), { form: "prefix", lspace: "0.17em", rspace: space });
    return limits ? set(operator, { movablelimits: "true", "data-limits": "" }) : operator;
  }

  #construct(name: string): Element {
    switch (name) {
      case " ":
      case "\n":
        return set(node("mspace"), { width: "0.33em" });
      case "frac":
      case "dfrac":
      case "tfrac":
      case "cfrac":
        return node("mfrac", this.#argument(), this.#argument());
      case "binom":
      case "dbinom":
      case "tbinom": {
        const pair = node("mfrac", this.#argument(), this.#argument());
        return node("mrow", fence("(", true), set(pair, { linethickness: "0" }), fence(")", true));
      }
      case "text":
      case "textrm":
      case "textbf":
      case "textit":
      case "mbox":
      case "tag":
      case "label":
        return node("mtext", this.#raw().replace(/\s/g, "\u00a0"));
      case "mathrm":
      case "mathit":
      case "mathnormal":
        return set(node("mi", this.#raw()), { mathvariant: "normal" });
      case "operatorname":
      case "operatorname*":
        return this.#named(this.#raw().replaceAll("\\,", "\u2009"), name.endsWith("*"));
      case "overset":
      case "stackrel": {
        const above = this.#argument();
        return node("mover", this.#argument(), above);
      }
      case "underset": {
        const below = this.#argument();
        return node("munder", this.#argument(), below);
      }
      case "boxed":
      case "fbox":
        return set(node("mrow", this.#argument()), { class: "boxed" });
      case "not":
        return node("mo", `${this.#argument().textContent}\u0338`.normalize());
      default:
        return this.#enclosing(name);
    }
  }

  #enclosing(name: string): Element {
    switch (name) {
      case "sqrt":
        return this.#root();
      case "bmod":
      case "pmod":
        return this.#modulo(name === "pmod");
      case "left":
        return this.#enclosed();
      case "begin":
        return this.#environment();
      default:
        throw new Unreadable();
    }
  }

  #modulo(enclosed: boolean): Element {
    const word = this.#named("mod", false);
    const wide = set(node("mspace"), { width: "0.33em" });
    if (!enclosed) return node("mrow", wide, word, wide.cloneNode());
    return node("mrow", wide, fence("(", false), word, this.#argument(), fence(")", false));
  }

  #root(): Element {
    if (!this.#take("[")) return node("msqrt", this.#argument());
    const degree = row(this.#until("]"));
    if (!this.#take("]")) throw new Unreadable();
    return node("mroot", this.#argument(), degree);
  }

  /** Read the unparsed text of a group. */
  #raw(): string {
    if (!this.#take("{")) throw new Unreadable();
    let text = "";
    for (let depth = 1; ;) {
      const token = this.#tokens[this.#at];
      if (token === undefined) throw new Unreadable();
      this.#at += 1;
      if (token === "{") depth += 1;
      else if (token === "}") depth -= 1;
      if (depth === 0) return text;
      text += /^\\[^A-Za-z,]$/.test(token) ? token.slice(1) : token;
    }
  }

  #alphabet(name: string): Element {
    const [capitals, small, digits] = ALPHABETS.get(name) ?? [0, 0, 0];
    const inside = this.#argument();
    const leaves = [inside, ...inside.querySelectorAll("*")].filter(
      (one) => one.childElementCount === 0,
    );
    for (const leaf of leaves) {
      leaf.textContent = leaf.textContent.replace(/[A-Za-z0-9]/g, (letter) => {
        const code = letter.charCodeAt(0);
        const from = code >= 97 ? small - 97 : code >= 65 ? capitals - 65 : digits - 48;
        if (from + 48 <= 0 || (code < 65 && digits === 0)) return letter;
        return OLDER.get(from + code) ?? String.fromCodePoint(from + code);
      });
    }
    return inside;
  }

  #accented(name: string): Element {
    const below = BELOW.get(name);
    const wide = /^(wide|over|under)/.test(name);
    const mark = set(node("mo", below ?? ACCENTS.get(name) ?? ""), { stretchy: String(wide) });
    const base = this.#argument();
    const accented = below
      ? node("munder", base, mark)
      : set(node("mover", base, mark), { accent: "true" });
    return name.endsWith("brace") ? set(accented, { "data-limits": "" }) : accented;
  }

  #delimiter(): string {
    const token = this.#next();
    if (token === ".") return "";
    if (!token.startsWith("\\")) return { "<": "⟨", ">": "⟩" }[token] ?? token;
    const operator = OPERATORS.get(token.slice(1));
    if (operator === undefined) throw new Unreadable();
    return operator;
  }

  #enclosed(): Element {
    const parts = [fence(this.#delimiter(), true)];
    for (;;) {
      parts.push(...this.#until("\\middle"));
      if (this.#take("\\middle")) parts.push(fence(this.#delimiter(), true));
      else if (this.#take("\\right")) return node("mrow", ...parts, fence(this.#delimiter(), true));
      else throw new Unreadable();
    }
  }

  #environment(): Element {
    const name = this.#raw();
    const plain = name.replace("*", "");
    const round = ENVIRONMENTS.get(plain);
    if (!round) throw new Unreadable();
    // skips the column specification of the environment
    if (plain === "array" || plain === "alignat") this.#raw();
    const rows = this.#table(name, plain);
    const [open, close] = round;
    if (!open) return rows;
    return node("mrow", fence(open, true), rows, ...(close ? [fence(close, true)] : []));
  }

  /**
   * Parse rows of cells until the environment ends; a formula of a single cell becomes no table.
   */
  #table(name: string | undefined, kind: string): Element {
    const rows: Element[][] = [[]];
    for (;;) {
      rows.at(-1)?.push(row(this.#until()));
      if (this.#take("&")) continue;
      if (!this.#take("\\\\")) break;
      // skips the optional distance after a line break
      if (this.#take("[")) while (this.#next() !== "]");
      rows.push([]);
    }
    if (name !== undefined && !(this.#take("\\end") && this.#raw() === name))
      throw new Unreadable();
    const [[only] = [], ...more] = rows;
    if (more.length === 0 && rows[0]?.length === 1 && only && !ENVIRONMENTS.get(kind)?.[0])
      return only;
    const last = rows.at(-1);
    // removes the empty row after a last line break (\\)
    if (last?.length === 1 && last[0]?.childNodes.length === 0) rows.pop();
    const aligned = /^(align|alignat|aligned|split|eqnarray|)$/.test(kind);
    const cell = (content: Element, at: number): Element => {
      const side =
        kind === "cases"
          ? "left"
          : aligned && rows.some((one) => one.length > 1)
            ? at % 2 === 0
              ? "right"
              : "left"
            : "";
      return side ? set(node("mtd", content), { class: side }) : node("mtd", content);
    };
    const lines = rows.map((cells) => node("mtr", ...cells.map(cell)));
    const table = node("mtable", ...lines);
    return aligned ? set(table, { displaystyle: "true", class: "aligned" }) : table;
  }
}
