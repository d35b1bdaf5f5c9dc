/**
 * Layouts of C structs in the memory of a 32-bit WebAssembly instance: offsets as the C compiler
 * computes them.
 */

const SIZES = { i32: 4, u32: 4, f32: 4, size: 4, pointer: 4, i64: 8, u64: 8, f64: 8 } as const;
export type FieldType = keyof typeof SIZES;
/** A field of a C struct: name, type and, for arrays, the number of elements. */
export type Field = readonly [name: string, type: FieldType, count?: number];

export class RecordLayout {
  readonly bytes: number;
  private readonly places = new Map<string, { offset: number; type: FieldType }>();

  constructor(fields: readonly Field[]) {
    let end = 0;
    let alignment = 1;
    for (const [name, type, count = 1] of fields) {
      const size = SIZES[type];
      const offset = Math.ceil(end / size) * size;
      this.places.set(name, { offset, type });
      alignment = Math.max(alignment, size);
      end = offset + size * count;
    }
    this.bytes = Math.ceil(end / alignment) * alignment;
  }

  get(view: DataView, record: number, name: string, index = 0): number {
    const { at, type } = this.place(record, name, index);
    switch (type) {
      case "i32":
        return view.getInt32(at, true);
      case "f32":
        return view.getFloat32(at, true);
      case "f64":
        return view.getFloat64(at, true);
      case "i64":
        return Number(view.getBigInt64(at, true));
      case "u64":
        return Number(view.getBigUint64(at, true));
      default:
        return view.getUint32(at, true);
    }
  }

  /** Read a 64-bit field without loss of precision. */
  exact(view: DataView, record: number, name: string): bigint {
    return view.getBigUint64(this.place(record, name, 0).at, true);
  }

  set(view: DataView, record: number, name: string, value: number | bigint, index = 0): void {
    const { at, type } = this.place(record, name, index);
    switch (type) {
      case "i32":
        return view.setInt32(at, Number(value), true);
      case "f32":
        return view.setFloat32(at, Number(value), true);
      case "f64":
        return view.setFloat64(at, Number(value), true);
      case "i64":
        return view.setBigInt64(at, BigInt(value), true);
      case "u64":
        return view.setBigUint64(at, BigInt(value), true);
      default:
        return view.setUint32(at, Number(value), true);
    }
  }

  private place(record: number, name: string, index: number): { at: number; type: FieldType } {
    const place = this.places.get(name);
    if (place === undefined) throw new RangeError(`no field ${name}`);
    return { at: record + place.offset + index * SIZES[place.type], type: place.type };
  }
}

export const MOST_TOP_LOGPROBS = 20;

/** Layout of the C struct wherry_params. */
export const PARAMS = new RecordLayout([
  ["size", "size"],
  ["max_tokens", "i32"],
  ["min_tokens", "i32"],
  ["stop_ids", "pointer"],
  ["n_stop_ids", "size"],
  ["temperature", "f32"],
  ["dynamic_range", "f32"],
  ["dynamic_exponent", "f32"],
  ["top_p", "f32"],
  ["top_k", "i32"],
  ["min_p", "f32"],
  ["typical_p", "f32"],
  ["top_n_sigma", "f32"],
  ["xtc_probability", "f32"],
  ["xtc_threshold", "f32"],
  ["mirostat_tau", "f32"],
  ["mirostat_eta", "f32"],
  ["repetition_penalty", "f32"],
  ["presence_penalty", "f32"],
  ["frequency_penalty", "f32"],
  ["dry_multiplier", "f32"],
  ["dry_base", "f32"],
  ["dry_allowed_length", "i32"],
  ["dry_range", "i32"],
  ["dry_breakers", "pointer"],
  ["n_dry_breakers", "size"],
  ["seed", "u64"],
  ["bias_ids", "pointer"],
  ["bias_values", "pointer"],
  ["n_bias", "size"],
  ["allowed", "pointer"],
  ["n_allowed", "size"],
  ["bad_words", "pointer"],
  ["bad_word_lengths", "pointer"],
  ["n_bad_words", "size"],
  ["mask", "pointer"],
  ["top_logprobs", "i32"],
  ["prompt_logprobs", "i32"],
  ["priority", "i32"],
  ["user", "u64"],
  ["salt", "u64"],
  ["adapter", "i32"],
  ["max_drafts", "i32"],
  ["prediction", "pointer"],
  ["n_prediction", "size"],
  ["embed", "i32"],
  ["source", "pointer"],
  ["n_source", "size"],
]);

/** Layout of the C struct wherry_event. */
export const EVENT = new RecordLayout([
  ["id", "u64"],
  ["token", "i32"],
  ["finish", "i32"],
  ["prompt", "i32"],
  ["logprob", "f32"],
  ["n_top", "i32"],
  ["top_ids", "i32", MOST_TOP_LOGPROBS],
  ["top_logprobs", "f32", MOST_TOP_LOGPROBS],
  ["cached_tokens", "i32"],
  ["drafted_tokens", "i32"],
  ["accepted_tokens", "i32"],
  ["queue_seconds", "f32"],
  ["prefill_seconds", "f32"],
  ["decode_seconds", "f32"],
  ["embedding", "pointer"],
  ["n_embedding", "i64"],
]);

const STATS_FIELDS = [
  ["size", "size"],
  ["steps", "u64"],
  ["prompt_tokens", "u64"],
  ["prefill_tokens", "u64"],
  ["cached_tokens", "u64"],
  ["disk_tokens", "u64"],
  ["decode_tokens", "u64"],
  ["recomputed_tokens", "u64"],
  ["drafted_tokens", "u64"],
  ["accepted_tokens", "u64"],
  ["finished", "u64"],
  ["preemptions", "u64"],
  ["waiting", "i32"],
  ["prefilling", "i32"],
  ["running", "i32"],
  ["pages_total", "i32"],
  ["pages_free", "i32"],
  ["pages_cached", "i32"],
  ["page_size", "i32"],
  ["model_seconds", "f64"],
  ["sample_seconds", "f64"],
  ["host_seconds", "f64"],
  ["step_seconds", "f64"],
  ["failed_steps", "u64"],
  ["candidate_rows", "u64"],
  ["whole_rows", "u64"],
  ["readback_bytes", "u64"],
  ["overlapped_seconds", "f64"],
  ["chained_steps", "u64"],
  ["vain_rows", "u64"],
  ["graph_steps", "u64"],
  ["graphs_given_up", "pointer"],
  ["chains_given_up", "pointer"],
  ["disk_dropped", "u64"],
  ["disk_problem", "pointer"],
] as const satisfies readonly Field[];

/** Layout of the C struct wherry_stats. */
export const STATS = new RecordLayout(STATS_FIELDS);
