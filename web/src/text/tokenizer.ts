import { Tokenizer as Library } from "@huggingface/tokenizers";

import { ModelError } from "../errors.js";
import { type TokenBytes, tokenBytesOf } from "./token_bytes.js";
import type { TokenizerJson } from "./tokenizer_json.js";

/** JSON objects of a model's folder; those that it does not have are left out. */
export interface TokenizerFiles {
  readonly tokenizer: TokenizerJson;
  readonly tokenizerConfig?: JsonObject;
  readonly specialTokensMap?: JsonObject;
  readonly generationConfig?: JsonObject;
  readonly config?: JsonObject;
}

/** What JSON.parse made of an object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** What is used of the library: its own types need a bundler to be found. */
interface Backend {
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
  decode(ids: readonly number[], options: { skip_special_tokens: boolean }): string;
  id_to_token(id: number): string | undefined;
  token_to_id(name: string): number | undefined;
}
const BackendTokenizer = Library as new (tokenizer: object, config: object) => Backend;

const SPECIAL_NAMES = [
  "bos_token",
  "eos_token",
  "unk_token",
  "pad_token",
  "sep_token",
  "cls_token",
] as const;
const encoder = new TextEncoder();

/** Text to token ids and back. */
export class Tokenizer {
  /** Ids that end a text. */
  readonly eosIds: readonly number[];
  /** Special tokens by the names that templates know: "bos_token", "eos_token", ... */
  readonly specialTokens: Readonly<Record<string, string>>;
  readonly specialIds: ReadonlySet<number>;
  /** The bytes of single tokens, where the decoder works token by token. */
  readonly tokenBytes: TokenBytes | undefined;
  readonly #backend: Backend;

  /** @throws ModelError if tokenizer.json cannot be read. */
  constructor(files: TokenizerFiles) {
    const config = { ...files.specialTokensMap, ...files.tokenizerConfig };
    try {
      // What tokenizer_config.json says of texts is transformers' doing, not the tokenizer's.
      this.#backend = new BackendTokenizer(files.tokenizer, {
        clean_up_tokenization_spaces: false,
      });
      this.tokenBytes = tokenBytesOf(files.tokenizer);
    } catch (error) {
      throw new ModelError(`tokenizer.json cannot be read: ${String(error)}`, { cause: error });
    }
    const added = files.tokenizer.added_tokens ?? [];
    this.specialIds = new Set(added.filter((token) => token.special).map((token) => token.id));
    this.specialTokens = specialTokensOf(config);
    this.eosIds = this.#eosIds(files);
  }

  /**
   * Token ids of a text.
   *
   * @param options.addSpecialTokens whether the model's BOS and the like go around them (true).
   */
  encode(text: string, { addSpecialTokens = true } = {}): number[] {
    return this.#backend.encode(text, { add_special_tokens: addSpecialTokens }).ids;
  }

  /** The text of all ids together; unknown ones have none. */
  decode(ids: readonly number[], { skipSpecialTokens = true } = {}): string {
    const known = ids.filter(
      (id) => this.name(id) !== undefined && !(skipSpecialTokens && this.specialIds.has(id)),
    );
    if (known.length === 0) return "";
    return this.#backend.decode(known, { skip_special_tokens: false });
  }

  /** A token's name in the vocabulary; undefined for an unknown id. */
  name(id: number): string | undefined {
    return this.#backend.id_to_token(id);
  }

  /** The id of a token's name; undefined if there is none. */
  idOf(name: string): number | undefined {
    return this.#backend.token_to_id(name);
  }

  /** Whether a token is part of the text: known, and not special. */
  isText(id: number): boolean {
    return !this.specialIds.has(id) && this.name(id) !== undefined;
  }

  /** UTF-8 (or a part of it) that one token stands for; specials by their names. */
  piece(id: number): Uint8Array {
    const name = this.name(id);
    if (name === undefined) return new Uint8Array();
    if (this.specialIds.has(id)) return encoder.encode(name);
    return this.tokenBytes ? this.tokenBytes.of(name) : encoder.encode(this.decode([id]));
  }

  /** Chat models often name their end of turn in only one of these files: all count. */
  #eosIds(files: TokenizerFiles): number[] {
    const ids = [...eosIdsOf(files.generationConfig), ...eosIdsOf(files.config)];
    const named = this.specialTokens["eos_token"];
    const id = named === undefined ? undefined : this.idOf(named);
    return [...new Set(id === undefined ? ids : [...ids, id])];
  }
}

/** A token is a text or an object with "content". */
function specialTokensOf(config: JsonObject): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of SPECIAL_NAMES) {
    const value = config[name];
    const text = isObject(value) ? value["content"] : value;
    if (typeof text === "string") found[name] = text;
  }
  return found;
}

/** eos_token_id: an id, several, or none; multimodal models nest it. */
function eosIdsOf(config: JsonObject = {}): number[] {
  const nested = config["text_config"];
  const value = config["eos_token_id"] ?? (isObject(nested) ? nested["eos_token_id"] : undefined);
  const ids: unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  if (!ids.every((id) => Number.isSafeInteger(id) && Number(id) >= 0)) {
    throw new ModelError(
      `eos_token_id is ${JSON.stringify(value)}; it takes an id or a list of ids`,
    );
  }
  return ids as number[];
}

/** Whether JSON is an object, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
