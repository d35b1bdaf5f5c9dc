/**
 * The notebook's Python kernel: Pyodide in a worker, with Wherry's wheel. Cells run one after the
 * other, each as an asyncio task, so that a cell may `await`, block in synchronous code, and be
 * interrupted.
 */
import type { PyodideAPI } from "pyodide";
import type { PyCallable } from "pyodide/ffi";

import type { Order, Report } from "./messages.js";

/** Name of the wheel in the script's folder, which scripts/bundle_notebook.js inserts. */
declare const WHEEL: string;
// loaded by address, so that bundlers do not include it in this script
const PYODIDE = new URL("pyodide/pyodide.mjs", import.meta.url).href;

const SETUP = `
import asyncio, traceback
from pyodide.code import eval_code_async

class Cells:
    def __init__(self):
        self.names = {"__name__": "__main__"}
        self.task = None

    async def run(self, code):
        """What the last line gives, and what went wrong: texts, or None."""
        self.task = asyncio.ensure_future(eval_code_async(code, self.names, filename="<cell>"))
        try:
            value = await self.task
            return [None if value is None else repr(value), None]
        except asyncio.CancelledError:
            return [None, "Stopped."]
        except BaseException as error:
            trace = error.__traceback__
            while trace and trace.tb_frame.f_code.co_filename != "<cell>":
                trace = trace.tb_next
            return [None, "".join(traceback.format_exception(type(error), error, trace))]

    def stop(self):
        if self.task:
            self.task.cancel()

Cells()
`;

interface Cells {
  readonly run: PyCallable;
  readonly stop: PyCallable;
}

const report = (said: Report): void => {
  postMessage(said);
};

async function start(): Promise<{ python: PyodideAPI; cells: Cells }> {
  const { loadPyodide } = (await import(PYODIDE)) as {
    loadPyodide: () => Promise<PyodideAPI>;
  };
  const python = await loadPyodide();
  for (const error of [false, true]) {
    const decoder = new TextDecoder();
    const write = (bytes: Uint8Array): number => {
      report({ type: "text", text: decoder.decode(bytes, { stream: true }), error });
      return bytes.length;
    };
    if (error) python.setStderr({ write });
    else python.setStdout({ write });
  }
  await python.loadPackage(new URL(WHEEL, import.meta.url).href, {
    messageCallback: () => undefined,
  });
  return { python, cells: python.runPython(SETUP) as Cells };
}

const started = start();
started.then(
  ({ python }) => {
    report({
      type: "ready",
      version: `Python ${String(python.runPython("import platform; platform.python_version()"))}`,
    });
  },
  (error: unknown) => {
    report({ type: "failed", reason: String(error) });
  },
);
let last: Promise<void> = Promise.resolve();

async function run(code: string): Promise<void> {
  const { python, cells } = await started;
  const said = (await cells.run.callPromising(code)) as { toJs(): [string | null, string | null] };
  python.runPython("import sys; sys.stdout.flush(); sys.stderr.flush()");
  const [value, error] = said.toJs();
  report({ type: "done", value: value ?? null, error: error ?? null });
}

addEventListener("message", ({ data }: MessageEvent<Order>) => {
  if (data.type === "run") last = last.then(() => run(data.code));
  else void started.then(({ cells }) => cells.stop() as unknown);
});
