import type { ChatCompletionChunk, Timings, Usage } from "../src/index.js";
import { copyButton } from "../markdown/elements.js";
import { MarkdownView, showMarkdown } from "../markdown/view.js";
import { byId, element, say } from "./dom.js";
import { duration, speed } from "./format.js";
import { hello, stateCard } from "./hello.js";
import type { Session } from "./session.js";
import type { SettingsView } from "./settings.js";

const KEY = "wherry.turns";

interface Turn {
  readonly role: "user" | "assistant";
  content: string;
  pending?: boolean;
  failure?: string;
  note?: string;
}

/** The view of the conversation: its messages, the input field, and the running answer. */
export class ChatView {
  /** Tokens per second of the last answer; undefined before it. */
  lastSpeed: number | undefined;
  readonly #session: Session;
  readonly #settings: SettingsView;
  readonly #load: () => void;
  readonly #text = byId<HTMLTextAreaElement>("text");
  readonly #scroll = byId("scroll");
  #turns: Turn[] = kept();
  #running: AbortController | undefined;
  #follow = true; // whether the view scrolls with the end of the conversation

  /** @param load callback that loads the offered model. */
  constructor(session: Session, settings: SettingsView, load: () => void) {
    this.#session = session;
    this.#settings = settings;
    this.#load = load;
    this.#listen();
    session.listen(({ kind }) => {
      if (kind === "loading") this.stop();
      this.#showState();
      this.#showButton();
    });
    if (this.#turns.length > 0) this.#show();
  }

  /** Send a message; nothing happens while an answer is running. */
  ask(text: string): void {
    if (this.#running || !text.trim() || this.#session.state.kind !== "ready") return;
    this.#turns.push({ role: "user", content: text.trim() });
    this.#keep();
    void this.#answer();
  }

  /** Begin a new, empty conversation. */
  fresh(): void {
    this.stop();
    this.#turns = [];
    this.#keep();
    this.#show();
  }

  /** Store the conversation, so that it survives a reload of this tab. */
  #keep(): void {
    const turns = this.#turns.map(({ pending: _, ...turn }) => turn);
    try {
      sessionStorage.setItem(KEY, JSON.stringify(turns));
    } catch {
      // the conversation is too long to store, and its older version would be wrong
      sessionStorage.removeItem(KEY);
    }
  }

  /** Abort the running answer. */
  stop(): void {
    this.#running?.abort();
  }

  #listen(): void {
    byId("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#running) this.stop();
      else this.#send();
    });
    this.#text.addEventListener("input", () => {
      this.#showButton();
    });
    this.#text.addEventListener("keydown", (event) => {
      this.#key(event);
    });
    this.#scroll.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.#scroll;
      this.#follow = scrollHeight - scrollTop - clientHeight < 60;
    });
    addEventListener("pagehide", () => {
      this.#keep(); // stores the beginning of an unfinished answer, too
    });
    byId("fresh").addEventListener("click", () => {
      this.fresh();
      this.#text.focus();
    });
  }

  #send(): void {
    const { value } = this.#text;
    if (this.#session.state.kind !== "ready") return;
    this.#text.value = "";
    this.ask(value);
  }

  #key(event: KeyboardEvent): void {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (!this.#running) this.#send();
    } else if (event.key === "ArrowUp" && !this.#text.value && !this.#running) {
      const last = this.#turns.findLastIndex(({ role }) => role === "user");
      if (last < 0) return;
      event.preventDefault();
      this.#text.value = this.#turns[last]?.content ?? "";
      this.#turns.length = last;
      this.#keep();
      this.#show();
      this.#showButton();
    }
  }

  async #answer(): Promise<void> {
    const turn: Turn = { role: "assistant", content: "", pending: true };
    const messages = this.#messages();
    this.#turns.push(turn);
    this.#follow = true;
    this.#show();
    const running = (this.#running = new AbortController());
    this.#showButton();
    const started = performance.now();
    const heard = new Heard();
    try {
      const { temperature, max_tokens, seed } = this.#settings.settings;
      const asked = { messages, stream: true as const, stream_options: { include_usage: true } };
      const answer = await this.#session.engine.chat.completions.create(
        {
          ...asked,
          temperature: temperature ?? null,
          max_tokens: max_tokens ?? null,
          seed: seed ?? null,
        },
        { signal: running.signal },
      );
      for await (const chunk of answer) {
        turn.content += heard.take(chunk, performance.now() - started);
        this.#drawSoon();
      }
    } catch (error) {
      if (running.signal.aborted) heard.finish = "stopped";
      else turn.failure = error instanceof Error ? error.message : String(error);
    }
    this.#running = undefined;
    turn.pending = false;
    turn.note = heard.note;
    this.lastSpeed = heard.speed ?? this.lastSpeed;
    if (this.#turns.includes(turn)) this.#keep();
    this.#show();
    this.#showButton();
    say(turn.failure ?? turn.content);
  }

  #messages(): { role: "system" | "user" | "assistant"; content: string }[] {
    const { system } = this.#settings.settings;
    const said = this.#turns.filter(({ role, content }) => role === "user" || content);
    const messages = said.map(({ role, content }) => ({ role, content }));
    return system ? [{ role: "system", content: system }, ...messages] : messages;
  }

  #again(): void {
    if (this.#running || this.#session.state.kind !== "ready") return;
    this.#turns.pop();
    void this.#answer();
  }

  #drawing = false;
  #view: [Element, MarkdownView] | undefined; // element and Markdown of the running answer

  #viewOf(body: HTMLElement): MarkdownView {
    if (this.#view?.[0] !== body) this.#view = [body, new MarkdownView(body)];
    return this.#view[1];
  }

  /** Draw the last turn of the conversation in the next animation frame. */
  #drawSoon(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      const turn = this.#turns.at(-1);
      const body = byId("talk").querySelector<HTMLElement>("article:last-of-type .body");
      if (turn?.role === "assistant" && body) this.#viewOf(body).show(turn.content);
      this.#toEnd();
    });
  }

  #show(): void {
    const talk = byId("talk");
    if (this.#turns.length === 0) {
      talk.replaceChildren(
        hello(
          this.#session,
          (text) => {
            this.ask(text);
          },
          this.#load,
        ),
      );
      return;
    }
    const state = element("div", { id: "state" });
    talk.replaceChildren(...this.#turns.map((turn, index) => this.#drawn(turn, index)), state);
    this.#showState();
    this.#toEnd();
  }

  /** Show the state of the model: in the greeting, or below the conversation. */
  #showState(): void {
    const below = document.querySelector("#state");
    if (this.#turns.length === 0 || !below) this.#show();
    else below.replaceChildren(...stateCard(this.#session, this.#load));
  }

  #drawn(turn: Turn, index: number): HTMLElement {
    if (turn.role === "user") {
      const said = element("span", { class: "sr" }, "You: ");
      return element("div", { class: "turn user" }, said, turn.content);
    }
    const made = element("article", { class: `turn${turn.pending ? " waiting" : ""}` });
    made.setAttribute("aria-label", "Answer");
    const body = element("div", { class: "body" });
    if (turn.pending) this.#viewOf(body).show(turn.content);
    else showMarkdown(body, turn.content);
    made.append(body);
    if (turn.failure)
      made.append(element("div", { class: "failure", role: "alert" }, turn.failure));
    if (!turn.pending) made.append(this.#foot(turn, index));
    return made;
  }

  #foot(turn: Turn, index: number): HTMLElement {
    const made = element("div", { class: "foot" });
    if (turn.content) made.append(copyButton(() => turn.content));
    if (index === this.#turns.length - 1) {
      const word = turn.failure ? "Try again" : "Another answer";
      made.append(
        element(
          "button",
          {
            type: "button",
            click: () => {
              this.#again();
            },
          },
          word,
        ),
      );
    }
    if (turn.note) made.append(element("span", {}, turn.note));
    return made;
  }

  #toEnd(): void {
    if (this.#follow) this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  #showButton(): void {
    const send = byId<HTMLButtonElement>("send");
    const running = this.#running !== undefined;
    send.classList.toggle("running", running);
    send.disabled = !running && (!this.#text.value.trim() || this.#session.state.kind !== "ready");
    send.setAttribute("aria-label", running ? "Stop" : "Send");
    send.title = running ? "Stop (Esc)" : "Send (Enter)";
  }
}

/** The turns of the conversation that this tab has stored. */
function kept(): Turn[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as Turn[];
  } catch {
    return [];
  }
}

/** Collects facts from an answer's chunks, apart from its text: speed, tokens, end. */
class Heard {
  finish: string | null = null;
  #usage: Usage | undefined;
  #timings: Timings | undefined;
  #first: number | undefined; // time of the first chunk in milliseconds

  take(chunk: ChatCompletionChunk, at: number): string {
    this.#usage = chunk.usage ?? this.#usage;
    this.#timings = chunk.timings ?? this.#timings;
    const [choice] = chunk.choices;
    this.finish = choice?.finish_reason ?? this.finish;
    const text = choice?.delta.content ?? "";
    if (text) this.#first ??= at;
    return text;
  }

  get speed(): number | undefined {
    return this.#timings?.predicted_per_second;
  }

  get note(): string {
    const words: string[] = [];
    if (this.#usage) words.push(`${this.#usage.completion_tokens} tokens`);
    if (this.speed) words.push(speed(this.speed));
    if (this.#first !== undefined) words.push(`first after ${duration(this.#first)}`);
    const cached = this.#usage?.prompt_tokens_details.cached_tokens ?? 0;
    if (cached > 0) words.push(`${cached} tokens from the cache`);
    if (this.finish === "length") words.push("cut off: no tokens left");
    if (this.finish === "stopped") words.push("stopped");
    return words.join(" · ");
  }
}
