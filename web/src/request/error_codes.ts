// Written by `make generated` of app/data/error_codes.json; not to be edited.

/** Why a request was refused, or has failed: `code` of its error. */
export type RequestErrorCode =
  /** the caller aborted the request */
  | "aborted"
  /** the model's chat template does not accept the messages */
  | "chat_template"
  /** prompt and output do not fit the model's context */
  | "context_length_exceeded"
  /** the model failed while it ran the request */
  | "engine_error"
  /** an error of Wherry's own */
  | "internal_error"
  /** a grammar, an expression or a schema cannot be read, or is too large */
  | "invalid_grammar"
  /** an image cannot be read, or exceeds a limit */
  | "invalid_image"
  /** the request is no JSON */
  | "invalid_json"
  /** the model has no chat template */
  | "no_chat_template"
  /** the model gives no classes */
  | "no_classes"
  /** the model gives no embeddings */
  | "no_embeddings"
  /** the model gives no scores */
  | "no_scores"
  /** the model writes no text */
  | "no_text"
  /** the request's conditions leave no token possible */
  | "no_token_possible"
  /** content that the model does not read */
  | "unsupported_content"
  /** a field is not supported, and ignoring it would change the answer */
  | "unsupported_parameter"
  /** a schema has something that cannot be enforced */
  | "unsupported_schema"
  /** the model's tokenizer allows no grammars */
  | "unsupported_tokenizer";
