import { CoreError } from "./errors.js";
import type { Heap } from "./memory.js";

const WASI = "wasi_snapshot_preview1";
const NOT_SUPPORTED = 52; // WASI's error number (errno) of a function that a page does not have

/**
 * Build the imports of a WebAssembly instance: the package's functions by module, the memory if the
 * instance imports it, and WASI's clock and random bytes. Other WASI functions return "not
 * supported"; there is no file system, and no output.
 *
 * @param now returns milliseconds on a monotonic clock
 * @throws CoreError incompatible: the instance imports something else
 */
export function importsOf(
  module: WebAssembly.Module,
  own: WebAssembly.Imports,
  heap: () => Heap,
  now: () => number,
): WebAssembly.Imports {
  let written = "";
  const system: Record<string, (...args: never[]) => unknown> = {
    clock_time_get: (_clock: number, _precision: bigint, at: number) => {
      heap().view().setBigUint64(at, BigInt(Math.round(now() * 1e6)), true);
      return 0;
    },
    environ_sizes_get: (count: number, bytes: number) => {
      heap().view().setUint32(count, 0, true);
      heap().view().setUint32(bytes, 0, true);
      return 0;
    },
    environ_get: () => 0,
    random_get: (at: number, length: number) => {
      // copied, because getRandomValues refuses shared memory
      heap().bytes(at, length).set(crypto.getRandomValues(new Uint8Array(length)));
      return 0;
    },
    fd_write: (_file: number, parts: number, count: number, total: number) => {
      const view = heap().view();
      let bytes = 0;
      for (let i = 0; i < count; i++) {
        const length = view.getUint32(parts + 8 * i + 4, true);
        written = (written + heap().textOf(view.getUint32(parts + 8 * i, true), length)).slice(-2000);
        bytes += length;
      }
      view.setUint32(total, bytes, true);
      return 0;
    },
    proc_exit: (code: number) => {
      throw new Error(`it ended with ${code}: ${written}`);
    },
  };
  const imports: Record<string, Record<string, WebAssembly.ImportValue>> = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    const known = from === WASI ? (system[name] ?? (() => NOT_SUPPORTED)) : own[from]?.[name];
    if ((kind !== "function" && kind !== "memory") || known === undefined) {
      throw new CoreError("incompatible", `model.wasm imports ${from}.${name}, which is not known`);
    }
    (imports[from] ??= {})[name] = known;
  }
  return imports;
}
