import { Template } from "@huggingface/jinja";

import { ModelError, RequestError } from "../errors.js";
import { isObject, type JsonObject } from "./tokenizer.js";

/** A message as templates know it: content is a text. */
export interface TemplateMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

/** A model's own chat template (Jinja, in the dialect of Hugging Face's `transformers`). */
export class ChatTemplate {
  readonly source: string;
  readonly #template: Template;
  readonly #specialTokens: Readonly<Record<string, string>>;

  /**
   * @param specialTokens variables of the template: "bos_token", "eos_token", ...
   * @throws ModelError if the template is not valid Jinja.
   */
  constructor(source: string, specialTokens: Readonly<Record<string, string>> = {}) {
    try {
      this.#template = new Template(source);
    } catch (error) {
      throw new ModelError(`The chat template cannot be read: ${reason(error)}`, { cause: error });
    }
    this.source = source;
    this.#specialTokens = specialTokens;
  }

  /**
   * The prompt's text; encode it without special tokens, they are written in it.
   *
   * @param options.addGenerationPrompt whether the assistant's turn is opened at the end (true).
   * @param options.variables further variables of this template ("enable_thinking").
   * @throws RequestError if the template refuses the messages.
   */
  render(
    messages: readonly TemplateMessage[],
    { addGenerationPrompt = true, variables = {} }: RenderOptions = {},
  ): string {
    try {
      return this.#template.render({
        ...this.#specialTokens,
        tools: null,
        documents: null,
        ...variables,
        messages,
        add_generation_prompt: addGenerationPrompt,
      });
    } catch (error) {
      throw new RequestError(
        `The model's chat template does not accept these messages: ${reason(error)}`,
        { param: "messages", cause: error },
      );
    }
  }
}

/** See {@link ChatTemplate.render}. */
export interface RenderOptions {
  addGenerationPrompt?: boolean;
  variables?: JsonObject;
}

/**
 * A template's text: chat_template.jinja, else that of tokenizer_config.json; undefined if the model
 * has none: it only completes text. Of several named ones "default" is taken.
 *
 * @throws ModelError if it is of another type.
 */
export function templateSource(file?: string, config: JsonObject = {}): string | undefined {
  if (file !== undefined) return file;
  const value = config["chat_template"];
  const source: unknown = Array.isArray(value) ? ofNamed(value) : value;
  if (source == null) return undefined;
  if (typeof source !== "string") {
    throw new ModelError(`chat_template is of type ${typeof source}, not a text`);
  }
  return source;
}

function ofNamed(templates: readonly unknown[]): unknown {
  const named = templates.filter(isObject);
  const chosen = named.find((one) => one["name"] === "default") ?? named[0];
  return chosen?.["template"];
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
