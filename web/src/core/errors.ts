/** The kinds of errors of the core, named after the C ABI's status codes. */
export type CoreStatus =
  | "invalid_argument"
  | "not_found"
  | "out_of_memory"
  | "incompatible"
  | "busy"
  | "internal"
  | "device_lost"
  | "aborted";

export class CoreError extends Error {
  override readonly name = "CoreError";
  readonly status: CoreStatus;

  constructor(status: CoreStatus, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.status = status;
  }
}

/** Names of the values of `wherry_status` in engine/include/wherry.h. */
const STATUSES: ReadonlyMap<number, CoreStatus> = new Map([
  [-1, "invalid_argument"],
  [-2, "not_found"],
  [-3, "out_of_memory"],
  [-4, "incompatible"],
  [-5, "busy"],
  [-6, "internal"],
]);

export function statusOf(code: number): CoreStatus {
  return STATUSES.get(code) ?? "internal";
}

/** Return the message of a thrown value of any type. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
