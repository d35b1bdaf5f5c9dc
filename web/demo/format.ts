const THIN = "\u202f"; // narrow no-break space between a number and its unit

/** Format bytes with a suitable unit, as in "8.1 MiB". */
export function bytes(count: number): string {
  if (count < 2 ** 20) return `${Math.round(count / 2 ** 10)}${THIN}KiB`;
  if (count < 2 ** 30) return `${number(count / 2 ** 20)}${THIN}MiB`;
  return `${number(count / 2 ** 30)}${THIN}GiB`;
}

/** Format a rate in tokens per second. */
export function speed(rate: number): string {
  return `${number(rate)}${THIN}tokens/s`;
}

/** Format a duration given in milliseconds. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)}${THIN}ms`;
  return `${(milliseconds / 1000).toFixed(1)}${THIN}s`;
}

/** Format a number with at least two significant digits. */
export function number(value: number): string {
  return value < 9.95 ? value.toFixed(1) : String(Math.round(value));
}

/** Format a part of a whole as a percentage. */
export function percent(part: number, total: number): string {
  return total > 0 ? `${Math.round((100 * part) / total)}${THIN}%` : "–";
}
