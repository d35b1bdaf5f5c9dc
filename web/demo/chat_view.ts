import type { MarkdownView } from "../markdown/view.js";
import { byId, element, say } from "./dom.js";
import { Heard } from "./heard.js";
import { hello, stateCard } from "./hello.js";
import type { Session } from "./session.js";
import type { SettingsView } from "./settings.js";
import { answerTurn, editForm, userTurn } from "./turn_view.js";
import { keepTurns, keptTurns, type Turn } from "./turns.js";

/** The view of the conversation: its messages, the input field, and the running answer. */
export class ChatView {
  /** Tokens per second of the last answer; undefined before it. */
  lastSpeed: number | undefined;
  readonly #session: Session;
  readonly #settings: SettingsView;
  readonly #load: () => void;
  readonly #text = byId<HTMLTextAreaElement>("text");
  readonly #scroll = byId("scroll");
  #turns: Turn[] = keptTurns();
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
      if (kind === "ready" && this.#queued) void this.#answer();
      this.#showState();
      this.#showButton();
    });
    if (this.#turns.length > 0) this.#show();
  }

  /** Whether the last message waits for a model. */
  get #queued(): boolean {
    return !this.#running && this.#turns.at(-1)?.role === "user";
  }

  /** Whether a message can be sent now; while a model loads, the message waits for it. */
  get #open(): boolean {
    const { kind } = this.#session.state;
    return !this.#running && !this.#queued && (kind === "ready" || kind === "loading");
  }

  /** Send a message; nothing happens while an answer is running, or waits for the model. */
  ask(text: string): void {
    if (!this.#open || !text.trim()) return;
    this.#push(text.trim());
  }

  #push(content: string): void {
    this.#turns.push({ role: "user", content });
    this.#keep();
    if (this.#session.state.kind === "ready") {
      void this.#answer();
      return;
    }
    this.#show();
    this.#showButton();
    say("Queued until the model is ready.");
  }

  /** Begin a new, empty conversation. */
  fresh(): void {
    this.stop();
    this.#turns = [];
    this.#keep();
    this.#show();
  }

  #keep(): void {
    keepTurns(this.#turns);
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
    if (!this.#open) return;
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
      this.#edit(last);
    }
  }

  /** Show a field in place of a message of the person; sending it replaces all that follows. */
  #edit(index: number): void {
    const turn = this.#turns[index];
    if (!turn || this.#running) return;
    this.#show();
    const form = editForm(turn, (text) => {
      if (text) {
        this.#turns.length = index;
        this.#push(text);
      } else this.#show();
      this.#text.focus();
    });
    byId("talk").children[index]?.replaceWith(form);
    form.querySelector("textarea")?.focus();
  }

  async #answer(): Promise<void> {
    const turn: Turn = { role: "assistant", content: "", pending: true };
    const messages = this.#messages();
    this.#turns.push(turn);
    this.#follow = true;
    const running = (this.#running = new AbortController());
    this.#show();
    this.#showButton();
    const started = performance.now();
    const heard = new Heard();
    try {
      const { temperature, max_tokens, seed } = this.#settings.settings;
      const request = { messages, stream: true as const, stream_options: { include_usage: true } };
      const answer = await this.#session.engine.chat.completions.create(
        {
          ...request,
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
  #view: MarkdownView | undefined; // Markdown of the last answer

  /** Draw the running answer in the next animation frame, unless it has ended by then. */
  #drawSoon(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      const turn = this.#turns.at(-1);
      if (turn?.pending) this.#view?.show(turn.content);
      this.#toEnd();
    });
  }

  #show(): void {
    const chat = byId("talk");
    if (this.#turns.length === 0) {
      chat.replaceChildren(
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
    chat.replaceChildren(...this.#turns.map((turn, index) => this.#drawn(turn, index)), state);
    this.#showState();
    this.#toEnd();
  }

  #drawn(turn: Turn, index: number): HTMLElement {
    const last = index === this.#turns.length - 1;
    if (turn.role === "user") {
      const edit = (): void => {
        this.#edit(index);
      };
      return userTurn(turn, { busy: this.#running !== undefined, queued: last, edit });
    }
    const again = (): void => {
      this.#again();
    };
    const [article, view] = answerTurn(turn, last ? again : undefined);
    this.#view = view;
    return article;
  }

  /** Show the state of the model: in the greeting, or below the conversation. */
  #showState(): void {
    const below = document.querySelector("#state");
    if (this.#turns.length === 0 || !below) this.#show();
    else below.replaceChildren(...stateCard(this.#session, this.#load));
  }

  #toEnd(): void {
    if (this.#follow) this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  #showButton(): void {
    const send = byId<HTMLButtonElement>("send");
    const running = this.#running !== undefined;
    send.classList.toggle("running", running);
    send.disabled = !running && !(this.#open && this.#text.value.trim());
    send.setAttribute("aria-label", running ? "Stop" : "Send");
    send.title = running ? "Stop (Esc)" : "Send (Enter)";
  }
}
