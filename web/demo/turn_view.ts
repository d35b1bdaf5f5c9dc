/** Draws the turns of a conversation: what a person has said, and the answers. */
import { copyButton } from "../markdown/elements.js";
import { MarkdownView } from "../markdown/view.js";
import { element, icon } from "./dom.js";
import type { Turn } from "./turns.js";

const PENCIL = "m5 19 1-4L16 5l3 3L9 18l-4 1Zm9-12 3 3";

/** Create the element of a person's message. */
export function userTurn(
  { content }: Turn,
  { busy, queued, edit }: { busy: boolean; queued: boolean; edit: () => void },
): HTMLElement {
  const button = element("button", { type: "button", class: "icon", "aria-label": "Edit" });
  button.title = "Edit and ask again";
  button.disabled = busy;
  button.addEventListener("click", edit);
  button.append(icon(PENCIL));
  const said = element("span", { class: "sr" }, "You: ");
  const box = element("div", { class: "mine" }, button);
  box.append(element("div", { class: "turn user" }, said, content));
  if (queued) box.append(element("p", { class: "hint" }, "Queued until the model is ready"));
  return box;
}

/** Create a form in place of a person's message; `done` gets the new text, "" to change nothing. */
export function editForm({ content }: Turn, done: (text: string) => void): HTMLFormElement {
  const text = element("textarea", { "aria-label": "Message", rows: "1" });
  text.value = content;
  const cancel = element("button", { type: "button" }, "Cancel");
  cancel.addEventListener("click", () => {
    done("");
  });
  const send = element("button", { class: "primary" }, "Send");
  const buttons = element("div", { class: "row end" }, cancel, send);
  const form = element("form", { class: "edit" }, text, buttons);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    done(text.value.trim());
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") done("");
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}

/**
 * Create the element of an answer.
 *
 * @param again draws another answer; undefined if this is not the last turn.
 * @returns the element, and the view of its text, which may grow.
 */
export function answerTurn(
  turn: Turn,
  again: (() => void) | undefined,
): readonly [HTMLElement, MarkdownView] {
  const article = element("article", { class: `turn${turn.pending ? " waiting" : ""}` });
  article.setAttribute("aria-label", "Answer");
  const body = element("div", { class: "body" });
  const view = new MarkdownView(body);
  view.show(turn.content);
  article.append(body);
  if (turn.failure)
    article.append(element("div", { class: "failure", role: "alert" }, turn.failure));
  if (!turn.pending) article.append(foot(turn, again));
  return [article, view];
}

function foot(turn: Turn, again: (() => void) | undefined): HTMLElement {
  const box = element("div", { class: "foot" });
  if (turn.content) box.append(copyButton(() => turn.content));
  if (again) {
    const word = turn.failure ? "Try again" : "Another answer";
    box.append(element("button", { type: "button", click: again }, word));
  }
  if (turn.note) box.append(element("span", {}, turn.note));
  return box;
}
