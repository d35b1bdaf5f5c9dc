/**
 * The greeting in place of an empty conversation: the state of the model, and suggested questions.
 */
import { deviceNote } from "./device_note.js";
import { element, svg } from "./dom.js";
import { bytes } from "./format.js";
import type { Session, State } from "./session.js";

const IDEAS = [
  "Tell me a story about a fox.",
  "How many legs has a spider?",
  "What is the capital of France?",
  "Write a poem about the sea.",
];
const PHASES = {
  download: "Fetching",
  compile: "Preparing the program of",
  weights: "Loading the weights of",
  pipelines: "Preparing the kernels of",
} as const;

/** Create the greeting for a state of the model. */
export function hello(
  session: Session,
  ask: (text: string) => void,
  load: () => void,
): HTMLElement {
  const { state } = session;
  const ideas = IDEAS.map((text) => {
    const button = element(
      "button",
      {
        type: "button",
        click: () => {
          ask(text);
        },
      },
      text,
    );
    button.disabled = state.kind !== "ready" && state.kind !== "loading";
    return button;
  });
  return element(
    "section",
    { class: "hello" },
    scene(),
    element("h3", {}, "What shall we talk about?"),
    element("p", {}, "The model runs in this page. What you type stays on this device."),
    ...stateCard(session, load),
    element("div", { class: "ideas" }, ...ideas),
  );
}

/**
 * Create a card with the state of the model and possible actions; [] if the model is ready and runs
 * as well as it can.
 */
export function stateCard(session: Session, load: () => void): HTMLElement[] {
  const { state } = session;
  switch (state.kind) {
    case "ready": {
      const note = deviceNote(state.model);
      return note === undefined ? [] : [card(note)];
    }
    case "none":
      return [card("No model is chosen. Open one by the button at the top.")];
    case "failed":
      return [failed(session, state.reason)];
    case "offered": {
      const button = element("button", { type: "button", class: "primary", click: load });
      button.append(`Load ${state.name}, ${bytes(state.bytes)}`);
      return [element("p", {}, button)];
    }
    case "loading":
      return [loadingCard(state.name, state.progress)];
  }
}

function failed(session: Session, reason: string): HTMLElement {
  const retry = (): void => {
    session.retry();
  };
  const again = element("button", { type: "button", class: "retry", click: retry }, "Try again");
  return element("div", { class: "failure", role: "alert" }, element("span", {}, reason), again);
}

function card(text: string): HTMLElement {
  return element("div", { class: "loading-card" }, text);
}

function loadingCard(
  name: string,
  progress: Extract<State, { kind: "loading" }>["progress"],
): HTMLElement {
  if (progress === "elsewhere") {
    const text = `Another tab loads ${name}. What it fetches is used here, too.`;
    return card(text);
  }
  const { phase, done, total } = progress ?? { phase: "download" as const, done: 0, total: 0 };
  const inBytes = phase === "download" || phase === "weights";
  const amount =
    total === 0 ? "" : inBytes ? `${bytes(done)} of ${bytes(total)}` : `${done} of ${total}`;
  const bar = element("progress", { "aria-label": `${PHASES[phase]} ${name}` });
  if (total > 0) {
    bar.max = total;
    bar.value = done;
  }
  const line = element("div", { class: "line" }, element("span", {}, `${PHASES[phase]} `));
  line.firstElementChild?.append(element("strong", {}, name));
  line.append(element("span", {}, amount));
  return element("div", { class: "loading-card" }, line, bar);
}

const WAVE = "q10 -7 20 0 t20 0";

function scene(): SVGSVGElement {
  const wave = (y: number, kind: string): SVGPathElement =>
    svg("path", { class: `wave ${kind}`, d: `M-40 ${y} ${WAVE.repeat(11)}` });
  return svg(
    "svg",
    { class: "scene", viewBox: "0 0 320 130", "aria-hidden": "true" },
    wave(100, "far"),
    svg(
      "g",
      { class: "boat" },
      svg("path", {
        transform: "translate(112 4) scale(3)",
        d: "M15 3v17H5zM17 6l9 14h-9zM3 22h26l-4 6H7z",
      }),
    ),
    wave(96, ""),
    wave(108, "far"),
    wave(119, "far"),
  );
}
