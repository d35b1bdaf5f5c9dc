/**
 * Where bytes are kept: names to values, nothing else. Names are paths of one or more parts with
 * "/" between them. A value is there whole or not at all.
 */
export interface ByteStore {
  /** Whether other pages of this site see what is put. */
  readonly shared: boolean;
  get(name: string): Promise<Uint8Array | undefined>;
  /** @throws QuotaError if the browser keeps no more. */
  put(name: string, value: Uint8Array): Promise<void>;
  /** Remove a value, or all below a path; it is no error if there is none. What is written at that moment stays. */
  remove(path: string): Promise<void>;
  /** Names of all values below a path, sorted. */
  names(path: string): Promise<string[]>;
}
