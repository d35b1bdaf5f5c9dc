/**
 * Layouts of C structs in the memory of a 32-bit WebAssembly instance: offsets as the C compiler
 * computes them.
 */

import { EVENT_FIELDS, PARAMS_FIELDS, STATS_FIELDS } from "./record_fields.js";

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
export const PARAMS = new RecordLayout(PARAMS_FIELDS);
/** Layout of the C struct wherry_event. */
export const EVENT = new RecordLayout(EVENT_FIELDS);
/** Layout of the C struct wherry_stats. */
export const STATS = new RecordLayout(STATS_FIELDS);
