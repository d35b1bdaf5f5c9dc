/**
 * Masks of xgrammar: which tokens may come next, so that an output matches a JSON Schema or a
 * grammar. This file, and the library that it brings along, is loaded by the first such request.
 */
import type { CompiledGrammar, GrammarCompiler, GrammarMatcher } from "@mlc-ai/web-xgrammar";

import type { CoreMask } from "../core/core.js";
import { RequestError } from "../errors.js";
import type { ModelText, OutputFormat } from "../request/plan.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { callsTag } from "./calls_tag.js";
import { checkSchema } from "./schema_audit.js";
import { schemaGrammar } from "./schema_grammar.js";
import { largeGrammar } from "./size_limits.js";
import { loadXgrammar, xgrammar } from "./xgrammar.js";

type Held = Exclude<OutputFormat, { type: "text" }>;

const compilers = new WeakMap<Tokenizer, Promise<GrammarCompiler>>();

/**
 * A mask for each choice of a request.
 *
 * @param ends whether the model's end tokens end an output; else it ends where the grammar does.
 * @throws RequestError if the format cannot be enforced.
 */
export async function grammarMasks(
  format: Held,
  { choices, ends }: { choices: number; ends: boolean },
  model: ModelText,
): Promise<CoreMask[]> {
  await loadXgrammar();
  let made = compilers.get(model.tokenizer);
  if (!made) compilers.set(model.tokenizer, (made = compilerOf(model)));
  const compiled = await compile(format, await made);
  return Promise.all(Array.from({ length: choices }, () => MatcherMask.of(compiled, ends)));
}

async function compilerOf({ tokenizer, vocabSize }: ModelText): Promise<GrammarCompiler> {
  const rule = tokenizer.tokenBytes;
  if (!rule) {
    throw new RequestError(
      "response_format needs a tokenizer whose tokens are bytes (byte-level BPE, or SentencePiece " +
        "with byte fallback); this model's is of another kind",
      { param: "response_format" },
    );
  }
  // Special tokens have no text: a string of JSON cannot hold them.
  const names = Array.from({ length: vocabSize }, (_, id) =>
    tokenizer.specialIds.has(id) ? "" : (tokenizer.name(id) ?? ""),
  );
  const kind = rule.eachByte ? "byte_fallback" : "byte_level";
  const stops = [...tokenizer.eosIds];
  const info = await xgrammar.TokenizerInfo.createTokenizerInfo(
    names,
    kind,
    false,
    vocabSize,
    stops,
  );
  return xgrammar.GrammarCompiler.createGrammarCompiler(info);
}

async function compile(format: Held, compiler: GrammarCompiler): Promise<CompiledGrammar> {
  const param = format.type === "tools" ? "tools" : "response_format";
  if (format.type === "json_schema") checkSchema(format.json_schema.schema, param);
  const large = format.type === "grammar" ? largeGrammar(format.grammar) : undefined;
  if (large !== undefined) throw new RequestError(`The grammar ${large}`, { param });
  try {
    switch (format.type) {
      case "json_object":
        return await compileText(await schemaGrammar({ type: "object" }), compiler);
      case "json_schema":
        return await compileText(await schemaGrammar(format.json_schema.schema), compiler);
      case "grammar":
        return await compileText(format.grammar, compiler);
      case "tools":
        return await compiler.compileStructuralTag(await callsTag(format.asked, schemaGrammar));
    }
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new RequestError(`${param} cannot be compiled: ${reason}`, { param, cause: error });
  }
}

async function compileText(grammar: string, compiler: GrammarCompiler): Promise<CompiledGrammar> {
  const read = await xgrammar.Grammar.fromEBNF(grammar);
  try {
    return await compiler.compileGrammar(read);
  } finally {
    read.dispose();
  }
}

/** One output on its way through a grammar. */
class MatcherMask implements CoreMask {
  readonly #matcher: GrammarMatcher;
  #next: Int32Array | undefined; // of the token that comes next
  #failure = "";

  private constructor(matcher: GrammarMatcher) {
    this.#matcher = matcher;
  }

  static async of(compiled: CompiledGrammar, ends: boolean): Promise<MatcherMask> {
    const made = new MatcherMask(
      await xgrammar.GrammarMatcher.createGrammarMatcher(compiled, undefined, !ends),
    );
    await made.#prepare();
    if (made.#next?.every((bits) => bits === 0)) {
      made.release();
      throw new RequestError("No token of the vocabulary can begin what the output is held to");
    }
    return made;
  }

  fill(bits: Uint32Array): boolean {
    if (!this.#next) throw new Error(`no mask is ready: ${this.#failure}`);
    bits.set(new Uint32Array(this.#next.buffer, this.#next.byteOffset, this.#next.length));
    return false;
  }

  accept(token: number): boolean {
    if (!this.#matcher.acceptToken(token))
      throw new Error(`the grammar has no token ${token} here`);
    if (this.#matcher.isTerminated()) return true;
    // Asynchronous by its signature alone: it is done before the next task, and so the next step.
    void this.#prepare();
    return false;
  }

  release(): void {
    this.#matcher.dispose();
  }

  async #prepare(): Promise<void> {
    this.#next = undefined;
    try {
      this.#next = await this.#matcher.getNextTokenBitmask();
    } catch (error) {
      this.#failure = error instanceof Error ? error.message : String(error);
    }
  }
}
