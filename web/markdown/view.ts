import { Blocks } from "./blocks.js";

/** An element that shows growing Markdown: only the new part is parsed. */
export class MarkdownView {
  readonly #element: HTMLElement;
  #blocks: Blocks;
  #read = ""; // the complete lines that are already parsed
  #mark: ReturnType<Blocks["mark"]> | undefined; // snapshot before the incomplete last line

  /** @param element empty, and filled by this view alone. */
  constructor(element: HTMLElement) {
    this.#element = element;
    this.#blocks = new Blocks(element);
  }

  /** Show a text, which may extend the previous one. */
  show(text: string): void {
    if (!text.startsWith(this.#read)) this.#again();
    if (this.#mark) this.#blocks.back(this.#mark);
    const end = text.lastIndexOf("\n") + 1;
    if (end > this.#read.length) {
      for (const line of text.slice(this.#read.length, end - 1).split("\n"))
        this.#blocks.line(line.replace(/\r$/, ""));
      this.#read = text.slice(0, end);
    }
    this.#mark = this.#blocks.mark();
    if (end < text.length) this.#blocks.line(text.slice(end));
    this.#blocks.draw();
  }

  #again(): void {
    this.#element.replaceChildren();
    this.#blocks = new Blocks(this.#element);
    this.#read = "";
    this.#mark = undefined;
  }
}
