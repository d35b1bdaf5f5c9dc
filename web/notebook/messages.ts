/** The messages between the notebook's page and its kernel. */

/** Messages to the kernel: run a cell, or interrupt the running one. */
export type Order =
  | { readonly type: "run"; readonly cell: number; readonly code: string }
  | { readonly type: "stop" };

/**
 * Messages from the kernel: text as it is written; `value`, the value of a cell's last line; `done`
 * at its end.
 */
export type Report =
  | { readonly type: "ready"; readonly version: string }
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "text"; readonly text: string; readonly error: boolean }
  | { readonly type: "done"; readonly value: string | null; readonly error: string | null };
