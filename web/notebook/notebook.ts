/**
 * A notebook page: cells of Python, run by a kernel in a worker, which can be stopped and
 * restarted.
 */
import { element, byId } from "../demo/dom.js";
import { EXAMPLE } from "./example.js";
import type { Order, Report } from "./messages.js";

interface Cell {
  readonly element: HTMLElement;
  readonly code: HTMLTextAreaElement;
  readonly count: HTMLElement;
  readonly output: HTMLElement;
}

const cells: Cell[] = [];
const queue: Cell[] = []; // cells in the order in which they run; the first one is running
let kernel: Worker | undefined;
let ready = false;
let runs = 0;

function restart(): void {
  kernel?.terminate();
  ready = false;
  for (const cell of queue.splice(0)) settle(cell, "");
  kernel = new Worker(new URL("kernel.js", document.baseURI), { type: "module" });
  kernel.addEventListener("message", ({ data }: MessageEvent<Report>) => heard(data));
  kernel.addEventListener("error", (event) => heard({ type: "failed", reason: event.message }));
  state("Python is starting …");
}

function send(order: Order): void {
  kernel?.postMessage(order);
}

function state(text: string): void {
  byId("state").textContent = text;
}

function heard(said: Report): void {
  const [running] = queue;
  switch (said.type) {
    case "ready":
      ready = true;
      state(said.version);
      document.body.dataset["ready"] = "";
      if (running) begin(running);
      return;
    case "failed":
      state(`Python did not start: ${said.reason}`);
      return;
    case "text":
      if (running) write(running, said.text, said.error ? "error" : "text");
      return;
    case "done":
      if (!running) return;
      if (said.value !== null) write(running, said.value, "value");
      if (said.error !== null) write(running, said.error, "error");
      queue.shift();
      settle(running, String(++runs));
      if (queue[0]) begin(queue[0]);
  }
}

function begin(cell: Cell): void {
  send({ type: "run", cell: cells.indexOf(cell), code: cell.code.value });
}

function run(cell: Cell): void {
  if (queue.includes(cell)) return;
  cell.output.replaceChildren();
  cell.element.dataset["state"] = "running";
  cell.count.textContent = "[*]";
  queue.push(cell);
  if (queue.length === 1 && ready) begin(cell);
}

function settle(cell: Cell, count: string): void {
  cell.element.dataset["state"] = "done";
  cell.count.textContent = `[${count || " "}]`;
}

/** Append text to a cell's output, merged with preceding text of the same kind. */
function write(cell: Cell, text: string, kind: "text" | "value" | "error"): void {
  const last = cell.output.lastElementChild;
  if (kind === "text" && last?.className === "text") last.append(text);
  else cell.output.append(element("pre", { class: kind }, text));
}

function addCell(text: string): Cell {
  const number = cells.length + 1;
  const code = element("textarea", {
    rows: "1",
    spellcheck: "false",
    autocapitalize: "off",
    "aria-label": `Cell ${String(number)}`,
  });
  const count = element("span", { class: "count", "aria-hidden": "true" }, "[ ]");
  const output = element("div", {
    class: "output",
    role: "log",
    "aria-label": `Output of cell ${String(number)}`,
  });
  const start = element(
    "button",
    { type: "button", "aria-label": `Run cell ${String(number)}` },
    "Run",
  );
  const section = element("section", { class: "cell" }, count, code, start, output);
  const cell: Cell = { element: section, code, count, output };
  start.addEventListener("click", () => run(cell));
  code.value = text;
  code.addEventListener("input", () => fit(code));
  code.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run(cell);
    if (event.shiftKey) (cells[cells.indexOf(cell) + 1] ?? addCell("")).code.focus();
  });
  cells.push(cell);
  byId("cells").append(section);
  fit(code);
  return cell;
}

function fit(code: HTMLTextAreaElement): void {
  code.rows = code.value.split("\n").length;
}

byId("run-all").addEventListener("click", () => cells.forEach(run));
byId("stop").addEventListener("click", () => {
  for (const cell of queue.splice(1)) settle(cell, "");
  if (queue.length > 0) send({ type: "stop" });
});
byId("restart").addEventListener("click", restart);
byId("add").addEventListener("click", () => addCell("").code.focus());
EXAMPLE.forEach(addCell);
restart();
