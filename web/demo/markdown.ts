/** Markdown, as far as models write it. Text becomes text nodes and nothing else. */
import { element } from "./dom.js";

const INLINE = /(`+)([^`]+?)\1|\*\*([^*]+?)\*\*|(?<![\w*])[*_]([^*_\s][^*_]*?)[*_](?![\w*])/g;
const FENCE = /^\s*(```+|~~~+)\s*([\w+#.-]*)/;
const BULLET = /^\s*[-*+] /;
const NUMBERED = /^\s*\d+[.)] /;
const QUOTE = /^\s*> ?/;
const HEADING = /^#{1,6} /;

/** The nodes of a text. */
export function markdown(text: string): DocumentFragment {
  const out = document.createDocumentFragment();
  const lines = text.split("\n");
  while (lines.length > 0) {
    const line = lines[0] ?? "";
    const fence = FENCE.exec(line);
    if (fence) out.append(codeBlock(fence[2] ?? "", fenced(lines, fence[1] ?? "")));
    else if (BULLET.test(line)) out.append(list("ul", take(lines, BULLET)));
    else if (NUMBERED.test(line)) out.append(list("ol", take(lines, NUMBERED)));
    else if (QUOTE.test(line)) out.append(inline(take(lines, QUOTE).join("\n"), "blockquote"));
    else if (HEADING.test(line))
      out.append(inline((lines.shift() ?? "").replace(HEADING, ""), "h4"));
    else if (line.trim() === "") lines.shift();
    else out.append(inline(paragraph(lines), "p"));
  }
  return out;
}

/** The lines that a pattern begins, without it. */
function take(lines: string[], pattern: RegExp): string[] {
  const end = lines.findIndex((line) => !pattern.test(line));
  return lines.splice(0, end < 0 ? lines.length : end).map((line) => line.replace(pattern, ""));
}

function paragraph(lines: string[]): string {
  const others = [FENCE, BULLET, NUMBERED, QUOTE, HEADING];
  const end = lines.findIndex(
    (line, index) =>
      index > 0 && (line.trim() === "" || others.some((pattern) => pattern.test(line))),
  );
  return lines.splice(0, end < 0 ? lines.length : end).join("\n");
}

function fenced(lines: string[], mark: string): string[] {
  lines.shift();
  const end = lines.findIndex((line) => line.trim().startsWith(mark));
  const inside = lines.splice(0, end < 0 ? lines.length : end);
  lines.shift();
  return inside;
}

function list(tag: "ul" | "ol", items: readonly string[]): HTMLElement {
  return element(tag, {}, ...items.map((item) => inline(item, "li")));
}

function inline(text: string, tag: "p" | "li" | "blockquote" | "h4"): HTMLElement {
  const made = element(tag);
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    made.append(text.slice(at, found.index));
    const [all, , code, bold, slanted] = found;
    if (code) made.append(element("code", {}, code));
    else if (bold) made.append(element("strong", {}, bold));
    else made.append(element("em", {}, slanted ?? ""));
    at = found.index + all.length;
  }
  made.append(text.slice(at));
  return made;
}

function codeBlock(language: string, lines: readonly string[]): HTMLElement {
  const text = lines.join("\n");
  return element(
    "div",
    { class: "block" },
    element("div", { class: "bar" }, element("span", {}, language || "text"), copyButton(text)),
    element("pre", { tabindex: "0" }, element("code", {}, text)),
  );
}

/** A button that copies a text. */
export function copyButton(text: string): HTMLButtonElement {
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(() => {
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1200);
    });
  });
  return button;
}
