/**
 * Runs the app module for one model: it converts requests in JSON to calls of the core, and the
 * core's events to responses in JSON.
 */
import type { CoreEvent, CoreMask, CoreParams } from "../core/core.js";
import { reasonOf } from "../core/errors.js";
import { writeEvents } from "../core/events.js";
import type { Arguments } from "../core/memory.js";
import { EVENT, PARAMS } from "../core/records.js";
import { ModelError } from "../errors.js";
import type { ModelFolder } from "../weights/folder.js";
import { Bridge } from "./bridge.js";
import { Grammars } from "./grammars.js";
import { Program, type ProgramExports } from "./program.js";
import { appProgram } from "./programs.js";

/** The exports of the app module, which web/app/page.cc describes. */
interface Exports extends ProgramExports {
  wherry_page_size(record: number): number;
  wherry_page_file(name: number, text: number, n: number): number;
  wherry_page_open(
    folder: number,
    name: number,
    toolFormat: number,
    context: bigint,
    vocabSize: bigint,
    embeddingSize: bigint,
  ): number;
  wherry_page_chats(): number;
  wherry_page_ask(number: number, json: number, n: number): bigint;
  wherry_page_end(id: bigint): void;
  wherry_page_hear(events: number, n: number, error: number): void;
  wherry_page_compiled(waiter: bigint, grammar: number, reason: number): void;
  wherry_page_vocabulary(n: number): number;
  wherry_page_rendered(json: number, length: number, n: number): number;
  wherry_page_encoded(text: number, length: number, special: number, n: number): number;
  wherry_page_decoded(ids: number, count: number, skip: number, n: number): number;
}

/** The core that runs the requests. */
export interface AppCore {
  /** Start a request. An exception ends the request; its {@link Heard} receives the exception. */
  add(id: number, prompt: Int32Array, params: CoreParams, mask: CoreMask | undefined): void;
  abort(id: number): void;
}

/**
 * Receives one JSON object of a response.
 *
 * @param last whether no further object follows.
 * @param thrown the exception of AppCore.add that ended the request, or undefined.
 */
export type Heard = (json: string, last: boolean, thrown: unknown) => void;

/** The properties of a model that requests depend on. */
export interface AppModel {
  /** The name of the model in responses. */
  readonly name: string;
  /** The maximum number of tokens of prompt and output together. */
  readonly context: number;
  readonly vocabSize: number;
  /** The number of dimensions of an embedding; undefined: unknown. */
  readonly embeddingSize?: number | undefined;
  /** The family of its tool call format; undefined: detected from the chat template. */
  readonly toolFormat?: string | undefined;
}

/** The files of a model folder that the app module reads. */
const FILES = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "generation_config.json",
  "config.json",
  "chat_template.jinja",
  "chat_template.json",
  "chat_template.tool_use.jinja",
  "wherry-head.json",
];
const EVENTS = 64; // maximum number of events in one call of the module
const encoder = new TextEncoder();

/** One instance of the app module, which serves one model. */
export class App {
  readonly #program: Program<Exports>;
  readonly #grammars: Grammars;
  readonly #heard: Map<number, Heard>;
  readonly #bridge: Bridge;
  readonly #events: number;

  private constructor(program: Program<Exports>, bridge: Bridge) {
    this.#program = program;
    this.#bridge = bridge;
    this.#heard = bridge.heard;
    this.#grammars = new Grammars(() =>
      this.#given((n) => program.exports.wherry_page_vocabulary(n)),
    );
    this.#events = program.exports.wherry_page_allocate(EVENTS * EVENT.bytes);
    bridge.mask = (grammar, stopIds) => this.#grammars.mask(grammar, stopIds);
    bridge.compile = (waiter, packed) => this.#compile(waiter, packed);
  }

  /**
   * Open a model.
   *
   * @throws ModelError if one of the folder's files is invalid.
   */
  static async open(folder: ModelFolder, model: AppModel, core: AppCore): Promise<App> {
    const [module, ...texts] = await Promise.all([
      appProgram(),
      ...FILES.map((name) => (folder.has(name) ? folder.bytes(name) : undefined)),
    ]);
    const bridge = new Bridge(core);
    const program = await Program.start<Exports>(module, (heap) => ({
      wherry_app: bridge.imports(heap),
    }));
    [PARAMS, EVENT].forEach(({ bytes }, record) => {
      const has = program.exports.wherry_page_size(record);
      if (has !== bytes) throw new Error(`record ${record} has ${has} bytes, not ${bytes}`);
    });
    const { exports } = program;
    const checked = (status: number): void => {
      if (status !== 0) throw new ModelError(program.lastError());
    };
    for (const [k, text] of texts.entries()) {
      if (!text) continue;
      program.with((args) =>
        checked(exports.wherry_page_file(args.text(FILES[k] ?? ""), args.bytes(text), text.length)),
      );
    }
    program.with((args) => {
      const { name, context, vocabSize, embeddingSize = 0, toolFormat = "" } = model;
      checked(
        exports.wherry_page_open(
          args.text(folder.source),
          args.text(name),
          args.text(toolFormat),
          BigInt(context),
          BigInt(vocabSize),
          BigInt(embeddingSize),
        ),
      );
    });
    return new App(program, bridge);
  }

  /** Whether the model has a chat template. */
  get chats(): boolean {
    return this.#program.exports.wherry_page_chats() !== 0;
  }

  /**
   * Start a request: a chat completion if it has `messages`, a text completion if it has `prompt`,
   * or what its `task` says: "embed", "rerank", "score" or "classify". If the request is invalid, the last object that `heard` receives is the error.
   *
   * @returns the id for {@link App.end}, once the core has received the request or it has ended.
   */
  async ask(json: string, heard: Heard): Promise<bigint> {
    const bytes = encoder.encode(json);
    const number = this.#bridge.next++;
    this.#heard.set(number, heard);
    const id = this.#program.with((args) =>
      this.#program.exports.wherry_page_ask(number, args.bytes(bytes), bytes.length),
    );
    await this.#bridge.compiling.get(id);
    return id;
  }

  /** Abort a request, whose last object then reports this. Ignores requests that have ended. */
  end(id: bigint): void {
    this.#program.exports.wherry_page_end(id);
  }

  /** Process events of the core, and pass the resulting objects to the requests' callbacks. */
  hear(events: readonly CoreEvent[]): void {
    for (let k = 0; k < events.length; k += EVENTS) {
      const some = events.slice(k, k + EVENTS);
      const error = some.find((event) => event.error !== undefined)?.error ?? "";
      this.#program.with((args) => {
        writeEvents(this.#program.heap, this.#events, some, args);
        this.#program.exports.wherry_page_hear(this.#events, some.length, args.text(error));
      });
    }
  }

  /**
   * Return the prompt of a chat request, without starting it.
   *
   * @throws Error if the request is invalid.
   */
  rendered(json: string): string {
    const { exports } = this.#program;
    return decoded(
      this.#withText(json, (at, length, n) => exports.wherry_page_rendered(at, length, n)),
    );
  }

  /** Return the token ids of a text. */
  encode(text: string, { addSpecialTokens = true } = {}): Int32Array {
    const { exports } = this.#program;
    const special = addSpecialTokens ? 1 : 0;
    const bytes = this.#withText(text, (at, length, n) =>
      exports.wherry_page_encoded(at, length, special, n),
    );
    return new Int32Array(bytes.buffer);
  }

  /** Return the text of token ids. */
  decode(ids: ArrayLike<number>, { skipSpecialTokens = true } = {}): string {
    const { exports } = this.#program;
    const skip = skipSpecialTokens ? 1 : 0;
    return decoded(
      this.#given((n, args) => exports.wherry_page_decoded(args.ints(ids), ids.length, skip, n)),
    );
  }

  /** Compile a constraint, and pass the grammar's number or the error to the app module. */
  async #compile(waiter: bigint, packed: Uint8Array): Promise<void> {
    let number = 0;
    let reason = "";
    try {
      number = await this.#grammars.compile(packed);
    } catch (error) {
      reason = reasonOf(error);
    }
    this.#program.with((args) => {
      this.#program.exports.wherry_page_compiled(waiter, number, args.text(reason));
    });
  }

  /** Call a function of the module with a text; return a copy of its result. */
  #withText(
    text: string,
    call: (at: number, length: number, n: number) => number,
  ): Uint8Array<ArrayBuffer> {
    const bytes = encoder.encode(text);
    return this.#given((n, args) => call(args.bytes(bytes), bytes.length, n));
  }

  /**
   * Return a copy of the bytes at the address that `call` returns; `call` writes their number to
   * `n`.
   *
   * @throws Error with the module's reason if the address is 0.
   */
  #given(call: (n: number, args: Arguments) => number): Uint8Array<ArrayBuffer> {
    const { heap } = this.#program;
    return this.#program.with((args) => {
      const n = args.block(4);
      const at = call(n, args);
      if (at === 0) throw new Error(this.#program.lastError());
      return heap.bytes(at, heap.view().getUint32(n, true)).slice();
    });
  }
}

function decoded(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
