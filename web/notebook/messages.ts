/** What the page and its kernel say to each other. */

/** To the kernel: run a cell, or end what runs. */
export type Order =
  | { readonly type: "run"; readonly cell: number; readonly code: string }
  | { readonly type: "stop" };

/** From the kernel. Text comes as it is written; `done` ends a cell, `value` is its last line's. */
export type Report =
  | { readonly type: "ready"; readonly version: string }
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "text"; readonly text: string; readonly error: boolean }
  | { readonly type: "done"; readonly value: string | null; readonly error: string | null };
