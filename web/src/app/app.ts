/** The app of one model: requests and answers as JSON, tokens and events to and from its core. */
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

/** web/app/page.cc */
interface Exports extends ProgramExports {
  wherry_page_size(record: number): number;
  wherry_page_file(name: number, text: number, n: number): number;
  wherry_page_open(
    folder: number,
    name: number,
    toolFormat: number,
    context: bigint,
    vocabSize: bigint,
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

/** Where its requests run. */
export interface AppCore {
  /** Whatever it throws ends the request, and is what the request's reader gets. */
  add(id: number, prompt: Int32Array, params: CoreParams, mask: CoreMask | undefined): void;
  abort(id: number): void;
}

/** Takes one JSON object of a request; last: none follows. thrown: what AppCore threw in its stead. */
export type Heard = (json: string, last: boolean, thrown: unknown) => void;

/** What the model is to requests. */
export interface AppModel {
  /** In answers. */
  readonly name: string;
  /** Tokens of prompt and output together. */
  readonly context: number;
  readonly vocabSize: number;
  /** How it calls tools; undefined: its template tells. */
  readonly toolFormat?: string | undefined;
}

const FILES = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "generation_config.json",
  "config.json",
  "chat_template.jinja",
];
const EVENTS = 64; // that are handed over at once
const encoder = new TextEncoder();

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

  /** @throws ModelError if one of the folder's files cannot be read. */
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
      const { name, context, vocabSize, toolFormat = "" } = model;
      const [place, called, format] = [
        args.text(folder.source),
        args.text(name),
        args.text(toolFormat),
      ];
      checked(exports.wherry_page_open(place, called, format, BigInt(context), BigInt(vocabSize)));
    });
    return new App(program, bridge);
  }

  /** Whether the model has a chat template. */
  get chats(): boolean {
    return this.#program.exports.wherry_page_chats() !== 0;
  }

  /**
   * Start a request: with `messages` a chat, with `prompt` a text that is continued. What is wrong
   * with it is the last that is heard of it.
   *
   * @returns for `end`; when it has been handed to the core, or has ended.
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

  /** End a request; what is heard last of it says so. Nothing happens if it has ended. */
  end(id: bigint): void {
    this.#program.exports.wherry_page_end(id);
  }

  /** What the core's events add to answers. */
  hear(events: readonly CoreEvent[]): void {
    for (let k = 0; k < events.length; k += EVENTS) {
      const some = events.slice(k, k + EVENTS);
      writeEvents(this.#program.heap, this.#events, some);
      const error = some.find((event) => event.error !== undefined)?.error ?? "";
      this.#program.with((args) => {
        this.#program.exports.wherry_page_hear(this.#events, some.length, args.text(error));
      });
    }
  }

  /** The prompt of a chat request. @throws Error saying what is wrong with it. */
  rendered(json: string): string {
    const { exports } = this.#program;
    return decoded(
      this.#told(json, (at, length, n) => exports.wherry_page_rendered(at, length, n)),
    );
  }

  encode(text: string, { addSpecialTokens = true } = {}): Int32Array {
    const { exports } = this.#program;
    const special = addSpecialTokens ? 1 : 0;
    const bytes = this.#told(text, (at, length, n) =>
      exports.wherry_page_encoded(at, length, special, n),
    );
    return new Int32Array(bytes.buffer);
  }

  decode(ids: ArrayLike<number>, { skipSpecialTokens = true } = {}): string {
    const { exports } = this.#program;
    const skip = skipSpecialTokens ? 1 : 0;
    return decoded(
      this.#given((n, args) => exports.wherry_page_decoded(args.ints(ids), ids.length, skip, n)),
    );
  }

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

  #told(
    text: string,
    call: (at: number, length: number, n: number) => number,
  ): Uint8Array<ArrayBuffer> {
    const bytes = encoder.encode(text);
    return this.#given((n, args) => call(args.bytes(bytes), bytes.length, n));
  }

  /** A copy of what a call gives, whose length it writes to `n`. */
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
