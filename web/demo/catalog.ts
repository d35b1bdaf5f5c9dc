/**
 * Reads the list of models that this page offers: `models.json`, which `wherry package` and `wherry
 * web` write.
 */

export interface OfferedModel {
  readonly name: string;
  /** Addresses of compiled folders, the one with the highest demands first. */
  readonly folders: readonly string[];
  /** Bytes of the first folder. */
  readonly bytes: number;
  readonly description?: string;
}

/** The models that the page offers; [] if there is no list. */
export async function offeredModels(): Promise<OfferedModel[]> {
  const response = await fetch("models.json", { cache: "no-cache" });
  if (!response.ok) return [];
  const { models } = (await response.json()) as { models: OfferedModel[] };
  return models;
}
