/** Splits the lines of a program into comments, texts, numbers, keywords and all else. */

/** What is open at the end of a line: the pattern that ends it, and its kind. */
interface Open {
  readonly end: RegExp;
  readonly kind: Kind;
}
type Kind = "comment" | "text" | "number" | "word" | "";
/** A part of a line. */
export type Part = readonly [kind: Kind, text: string];

interface Syntax {
  /** Matches the next part that is no plain text; its groups are those of `Kind`. */
  readonly parts: RegExp;
  /** What may continue on the next line: beginning -> end. */
  readonly long: Readonly<Record<string, RegExp>>;
}

// A single quote begins no string after a letter ("don't") or in Rust's lifetimes.
const TEXT = String.raw`"(?:\\.|[^"\\])*"?|(?<![\w&<])'(?:\\.|[^'\\]){0,300}'`;
const NUMBER = String.raw`\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*`;

interface Patterns {
  readonly comment: string;
  readonly text?: string;
  readonly number?: string;
  readonly flags?: string;
}

function syntax(
  { comment, text = TEXT, number = NUMBER, flags = "" }: Patterns,
  long: Readonly<Record<string, RegExp>>,
  words: string,
): Syntax {
  const word = String.raw`\b(?:${words.replaceAll(" ", "|")})\b`;
  const groups = `(?<comment>${comment})|(?<text>${text})|(?<number>${number})|(?<word>${word})`;
  return { parts: new RegExp(groups, `g${flags}`), long };
}

const BLOCK = { "/*": /\*\// };
const C = syntax(
  { comment: String.raw`\/\/.*|\/\*`, text: `\`|${TEXT}` },
  { ...BLOCK, "`": /`/ },
  "abstract as async await auto bool boolean break case catch char class const constexpr continue " +
    "def default defer delete do double else enum export extends extern false final finally " +
    "float fn for from fun func function go if impl implements import in inline instanceof int " +
    "interface internal is let long match mod mut namespace new nil null nullptr of " +
    "operator override package private protected pub public readonly return self short " +
    "signed sizeof static struct super switch template this throw throws trait true try type " +
    "typedef typename typeof undefined union unsigned use using val var virtual void volatile " +
    "when where while yield",
);
const PYTHON = syntax(
  { comment: "#.*", text: `"""|'''|${TEXT}` },
  { '"""': /"""/, "'''": /'''/ },
  "and as assert async await break case class continue def del elif else except False finally for " +
    "from global if import in is lambda match None nonlocal not or pass raise return self True try " +
    "while with yield",
);
const SHELL = syntax(
  { comment: String.raw`(?<![^\s])#.*` },
  {},
  "begin case def do done elif else elsif end esac export false fi for function if in let local " +
    "module nil null require return set sudo then true unless until while yield",
);
const SQL = syntax(
  { comment: String.raw`--.*|\/\*`, flags: "i" },
  BLOCK,
  "add all alter and as asc avg between by case count create delete desc distinct drop else end " +
    "exists false foreign from function group having if in index inner insert into is join key " +
    "left like limit local max min nil not null on or order outer primary references return right " +
    "select set sum table then true union unique update values view when where while with",
);
const MARKUP = syntax(
  { comment: "<!--", text: String.raw`(?<==\s*)(?:"[^"]*"|'[^']*')`, number: "(?!)" },
  { "<!--": /-->/ },
  String.raw`(?<=<\/?)[\w:-]+`,
);

/** The names of languages by syntax; others have no colours. */
const NAMES: readonly (readonly [Syntax, string])[] = [
  [
    C,
    "js javascript jsx mjs ts typescript tsx json jsonc c h cpp c++ cc hpp cs csharp css scss java",
  ],
  [C, "kotlin kt swift go golang rust rs php scala dart groovy objc proto wgsl glsl cuda zig"],
  [PYTHON, "python py python3 pycon"],
  [
    SHELL,
    "sh bash shell zsh console yaml yml toml ini ruby rb r perl make makefile dockerfile cmake",
  ],
  [SQL, "sql postgresql mysql sqlite lua haskell hs"],
  [MARKUP, "html xml svg vue"],
];

function syntaxOf(language: string): Syntax | undefined {
  const name = language.toLowerCase();
  return NAMES.find(([, names]) => names.split(" ").includes(name))?.[0];
}

/** Reads the lines of a program in a language, one after the other. */
export class Colours {
  readonly #syntax: Syntax | undefined;
  /** What the last line has left open; a snapshot of it undoes later lines. */
  open: Open | undefined;

  constructor(language: string) {
    this.#syntax = syntaxOf(language);
  }

  /** Split the next line, which may have its end. */
  parts(line: string): Part[] {
    const known = this.#syntax;
    if (!known) return [["", line]];
    const split: Part[] = [];
    let at = 0;
    while (at < line.length) {
      if (this.open) {
        const { end, kind } = this.open;
        const last = end.exec(line.slice(at));
        const next = last ? at + last.index + last[0].length : line.length;
        split.push([kind, line.slice(at, next)]);
        at = next;
        if (last) this.open = undefined;
        continue;
      }
      known.parts.lastIndex = at;
      const match = known.parts.exec(line);
      const begin = match?.index ?? line.length;
      if (begin > at) split.push(["", line.slice(at, begin)]);
      at = begin;
      if (!match) continue;
      const [kind] = Object.entries(match.groups ?? {}).find(([, text]) => text) ?? [""];
      split.push([kind as Kind, match[0]]);
      at += match[0].length;
      const end = known.long[match[0]];
      if (end) this.open = { end, kind: kind as Kind };
    }
    return split;
  }
}
