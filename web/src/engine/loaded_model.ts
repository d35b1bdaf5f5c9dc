import type { CoreStats } from "../core/core.js";
import type { ModelText } from "../request/plan.js";
import { ChatTemplate, templateSource } from "../text/chat_template.js";
import { isObject, type JsonObject, Tokenizer } from "../text/tokenizer.js";
import type { TokenizerJson } from "../text/tokenizer_json.js";
import { ModelError } from "../errors.js";
import type { ModelFolder } from "../weights/folder.js";
import type { ModelRunner } from "./model_runner.js";
import type { ModelInfo } from "./options.js";

/** What the core counts, and the requests of this engine that have not ended. */
export type EngineStats = CoreStats & { readonly openRequests: number };

/** A model that answers. */
export interface LoadedModel {
  readonly info: ModelInfo;
  readonly runner: ModelRunner;
  readonly text: ModelText;
}

/**
 * What a folder's tokenizer and template make of a request.
 *
 * @throws ModelError if one of its files cannot be read.
 */
export async function modelText(
  folder: ModelFolder,
  { context, vocab_size: vocabSize }: { context: number; vocab_size: number },
): Promise<ModelText> {
  const [tokenizer, tokenizerConfig, specialTokensMap, generationConfig, config] =
    await Promise.all([
      json(folder, "tokenizer.json"),
      json(folder, "tokenizer_config.json"),
      json(folder, "special_tokens_map.json"),
      json(folder, "generation_config.json"),
      json(folder, "config.json"),
    ]);
  if (!folder.has("tokenizer.json")) {
    throw new ModelError(`${folder.source} has no tokenizer.json`);
  }
  const made = new Tokenizer({
    tokenizer: tokenizer as unknown as TokenizerJson,
    tokenizerConfig,
    specialTokensMap,
    generationConfig,
    config,
  });
  const name = "chat_template.jinja";
  const file = folder.has(name) ? text(await folder.bytes(name)) : undefined;
  const source = templateSource(file, tokenizerConfig);
  const template = source === undefined ? undefined : new ChatTemplate(source, made.specialTokens);
  return { tokenizer: made, template, context, vocabSize, defaults: generationConfig };
}

/** A JSON object; {} if the folder has no such file. */
async function json(folder: ModelFolder, name: string): Promise<JsonObject> {
  if (!folder.has(name)) return {};
  const bytes = await folder.bytes(name);
  try {
    const value: unknown = JSON.parse(text(bytes));
    if (isObject(value)) return value;
  } catch {
    // said below
  }
  throw new ModelError(`${folder.source}: ${name} is no JSON object`);
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
