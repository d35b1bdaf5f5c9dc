/**
 * Numbers between bounds, as grammars write them. The library's own rules for these are wrong: its
 * numbers from 0 to 1 go up to 1.999999, and its integers up to -55 have -45 among them.
 */

const DIGITS = "[0-9]";
const FRACTION = `("." ${DIGITS}+)?`;

/**
 * An expression for the integers, or for the numbers without an exponent, from `low` to `high`, of
 * which one may be undefined. Bounds are whole for integers; they are written without an exponent, and
 * are safe integers when they are rounded.
 *
 * @returns undefined if there is no such number.
 */
export function numberRange(whole: boolean, low?: number, high?: number): string | undefined {
  const rest = whole ? wholes : decimals;
  const cases: string[] = [];
  if (low === undefined || low < 0) {
    const least = high === undefined ? 0 : Math.max(0, -high);
    cases.push(...rest(least, low === undefined ? undefined : -low).map((one) => `"-" ${one}`));
  }
  if (high === undefined || high >= 0) cases.push(...rest(Math.max(0, low ?? 0), high));
  return cases.length > 0 ? either(cases) : undefined;
}

function either(cases: readonly string[]): string {
  return `(${cases.join(" | ")})`;
}

function some(from: number, to: number): string[] {
  return from > to ? [] : [from === to ? `"${from}"` : `[${from}-${to}]`];
}

function times(expression: string, count: number): string {
  return count > 0 ? ` ${expression}{${count}}` : "";
}

/** Integers that are not negative, without leading zeros. */
function wholes(low: number, high?: number): string[] {
  if (high !== undefined && low > high) return [];
  const first = String(low);
  if (high === undefined) {
    return [digits(first, "9".repeat(first.length)), `[1-9] ${DIGITS}{${first.length},}`];
  }
  const last = String(high);
  if (first.length === last.length) return [digits(first, last)];
  const made = [digits(first, "9".repeat(first.length))];
  for (let size = first.length + 1; size < last.length; size += 1) {
    made.push(`[1-9]${times(DIGITS, size - 1)}`);
  }
  return [...made, digits(`1${"0".repeat(last.length - 1)}`, last)];
}

/** As many digits as both have, from one to the other. */
function digits(first: string, last: string): string {
  if (first === last) return `"${first}"`;
  const size = first.length - 1;
  const [from, to] = [Number(first[0]), Number(last[0])];
  if (/^0*$/.test(first.slice(1)) && /^9*$/.test(last.slice(1))) {
    return `${some(from, to).join("")}${times(DIGITS, size)}`;
  }
  if (from === to) return `"${from}" ${digits(first.slice(1), last.slice(1))}`;
  return either([
    `"${from}" ${digits(first.slice(1), "9".repeat(size))}`,
    ...some(from + 1, to - 1).map((one) => `${one}${times(DIGITS, size)}`),
    `"${to}" ${digits("0".repeat(size), last.slice(1))}`,
  ]);
}

/** Numbers that are not negative, by what is before the point. */
function decimals(low: number, high?: number): string[] {
  if (high !== undefined && low > high) return [];
  const [from, above] = parts(low);
  if (high === undefined) {
    return [`"${from}" ${atLeast(above)}`, ...wholes(from + 1).map((one) => `${one} ${FRACTION}`)];
  }
  const [to, below] = parts(high);
  if (from === to) return [`"${from}" ${above ? `"." ${between(above, below)}` : atMost(below)}`];
  return [
    `"${from}" ${atLeast(above)}`,
    ...wholes(from + 1, to - 1).map((one) => `${one} ${FRACTION}`),
    `"${to}" ${atMost(below)}`,
  ];
}

/** What is before the point, and the digits behind it. */
function parts(value: number): [number, string] {
  return [Math.floor(value), String(value).split(".")[1] ?? ""];
}

function atLeast(fraction: string): string {
  return fraction ? `"." ${from(fraction)}` : FRACTION;
}

function atMost(fraction: string): string {
  return fraction ? `("." ${either(cases(fraction))})?` : `("." "0"+)?`;
}

/** Digits behind the point that make no less than these; */
function from(fraction: string): string {
  if (!fraction) return `${DIGITS}*`;
  const digit = Number(fraction[0]);
  const more = some(digit + 1, 9).map((one) => `${one} ${DIGITS}*`);
  return either([...more, `"${digit}" ${from(fraction.slice(1))}`]);
}

/** or no more, maybe none; */
function upTo(fraction: string): string {
  return fraction ? `${either(cases(fraction))}?` : `"0"*`;
}

function cases(fraction: string): string[] {
  const digit = Number(fraction[0]);
  const less = some(0, digit - 1).map((one) => `${one} ${DIGITS}*`);
  return [...less, `"${digit}" ${upTo(fraction.slice(1))}`];
}

/** or neither. */
function between(low: string, high: string): string {
  if (!low) return upTo(high);
  const [first, last] = [Number(low[0]), Number(high[0])];
  if (first === last) return `"${first}" ${between(low.slice(1), high.slice(1))}`;
  return either([
    `"${first}" ${from(low.slice(1))}`,
    ...some(first + 1, last - 1).map((one) => `${one} ${DIGITS}*`),
    `"${last}" ${upTo(high.slice(1))}`,
  ]);
}
