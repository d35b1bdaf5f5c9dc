/** Convert a request to JSON, including a 64-bit seed, which JSON numbers cannot express. */
export function jsonOf(request: object): string {
  return JSON.stringify(request, (_, value: unknown) =>
    typeof value === "bigint" ? numberOf(value) : value,
  );
}

/**
 * Convert a 64-bit seed to the form that the core takes: unsigned, so that negative seeds wrap
 * around.
 */
function numberOf(value: bigint): number | string {
  const same = value < 2n ** 64n ? BigInt.asIntN(64, value) : value;
  return Number.isSafeInteger(Number(same)) ? Number(same) : same.toString();
}
