/** The parts of tokenizer.json that are read here; the rest is the tokenizer library's. */
export interface TokenizerJson {
  readonly added_tokens?: readonly AddedToken[];
  readonly decoder?: Decoder | null;
  readonly model: { readonly vocab?: unknown };
}

/** A token beside the model's own vocabulary. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
}

/** One step from tokens to text. */
export interface Decoder {
  readonly type: string;
  readonly decoders?: readonly Decoder[];
  readonly pattern?: { readonly String?: string };
  readonly content?: string;
  readonly start?: number;
  readonly stop?: number;
}
