import type { CoreMask } from "../core/core.js";
import type { ModelText, Plan } from "../request/plan.js";

/** What each choice of a request is held to; [] if nothing is. Grammars are loaded when first used. */
export async function masksOf({ format, params }: Plan, model: ModelText): Promise<CoreMask[]> {
  if (format.type === "text") return [];
  const { grammarMasks } = await import("../grammar/grammar_masks.js");
  const ends = (params[0]?.stopIds?.length ?? 0) > 0;
  return grammarMasks(format, { choices: params.length, ends }, model);
}
