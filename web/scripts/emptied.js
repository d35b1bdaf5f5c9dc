// Empties the output folder of a page: built files are removed, models stay.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** The entries of a page's folder that are not built here: the models, and their list. */
export const KEPT = new Set(["models", "models.json"]);

/** Create a folder, or remove all of its entries except the models. */
export async function emptied(folder) {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) {
    if (!KEPT.has(name)) await rm(join(folder, name), { recursive: true });
  }
}
