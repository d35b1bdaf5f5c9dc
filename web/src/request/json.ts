/** A request as JSON. A seed of up to 64 bits is what JSON has no number for. */
export function jsonOf(request: object): string {
  return JSON.stringify(request, (_, value: unknown) =>
    typeof value === "bigint" ? numberOf(value) : value,
  );
}

/** As the core takes it: unsigned numbers of 64 bits are those below 0, too. */
function numberOf(value: bigint): number | string {
  const same = value < 2n ** 64n ? BigInt.asIntN(64, value) : value;
  return Number.isSafeInteger(Number(same)) ? Number(same) : same.toString();
}
