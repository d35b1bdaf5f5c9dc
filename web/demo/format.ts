const THIN = "\u202f"; // between a number and its unit; no line breaks there

/** Bytes with a unit that fits: "8.1 MiB". */
export function bytes(count: number): string {
  if (count < 2 ** 20) return `${Math.round(count / 2 ** 10)}${THIN}KiB`;
  if (count < 2 ** 30) return `${number(count / 2 ** 20)}${THIN}MiB`;
  return `${number(count / 2 ** 30)}${THIN}GiB`;
}

/** Tokens a second. */
export function speed(rate: number): string {
  return `${number(rate)}${THIN}tokens/s`;
}

/** Milliseconds. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)}${THIN}ms`;
  return `${(milliseconds / 1000).toFixed(1)}${THIN}s`;
}

/** Two digits at least. */
export function number(value: number): string {
  return value < 9.95 ? value.toFixed(1) : String(Math.round(value));
}

/** A share of a whole. */
export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)}${THIN}%` : "–";
}
