/**
 * A store of bytes by name. Names are paths of one or more parts separated by "/". A value is
 * stored completely or not at all.
 */
export interface ByteStore {
  /** Whether other pages of this site see the stored values. */
  readonly shared: boolean;
  get(name: string): Promise<Uint8Array | undefined>;
  /** Store a value. @throws QuotaError if the browser's quota is exceeded. */
  put(name: string, value: Uint8Array): Promise<void>;
  /**
   * Remove a value, or all values below a path; missing ones are ignored. A value that is being
   * written stays.
   */
  remove(path: string): Promise<void>;
  /** List the names of all values below a path, sorted. */
  names(path: string): Promise<string[]>;
}
