// A folder for a page: what was made before is removed, models stay.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** The files that a page needs: its models, and their list. */
export const KEPT = new Set(["models", "models.json"]);

/** Make a folder, or empty it but for its models. */
export async function emptied(folder) {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) {
    if (!KEPT.has(name)) await rm(join(folder, name), { recursive: true });
  }
}
