/**
 * Tests what a core's threads depend on, without a core: imported memory, and the number of
 * threads.
 */
import assert from "node:assert/strict";
import { it } from "node:test";

import { memoryImport, ownMemory, sharedMemory, withSharing } from "../src/core/shared_memory.js";
import { defaultThreads } from "../src/engine/threads.js";

const text = (value: string): number[] => [value.length, ...Buffer.from(value)];
const SHARED = 3; // flags of shared limits, which have a maximum

/**
 * Build a module that imports a function, a table, a global and, last, memory of 2 to 300 pages.
 */
function importing(flags: number): Uint8Array<ArrayBuffer> {
  const imports = [
    [...text("a"), ...text("function"), 0, 0],
    [...text("a"), ...text("table"), 1, 0x70, 1, 0, 5],
    [...text("a"), ...text("global"), 3, 0x7f, 1],
    [...text("env"), ...text("memory"), 2, flags, 2, 0xac, 2],
  ];
  const types = [1, 4, 1, 0x60, 0, 0];
  const body = [imports.length, ...imports.flat()];
  return Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, ...types, 2, body.length, ...body]);
}

function instance(module: Uint8Array<ArrayBuffer>, memory: WebAssembly.Memory): unknown {
  const table = new WebAssembly.Table({ element: "anyfunc", initial: 1, maximum: 5 });
  const global = new WebAssembly.Global({ value: "i32", mutable: true }, 0);
  const imports = { a: { function: () => undefined, table, global }, env: { memory } };
  return new WebAssembly.Instance(new WebAssembly.Module(module), imports);
}

it("makes of a module for shared memory one for memory that is not, and back", () => {
  const bytes = importing(SHARED);
  const memory = memoryImport(bytes);
  assert.ok(memory);
  assert.deepEqual([memory.initial, memory.maximum], [2, 300]);
  const shared = sharedMemory(memory);
  assert.ok(shared);
  assert.throws(() => instance(bytes, ownMemory(memory)), WebAssembly.LinkError);
  assert.ok(instance(bytes, shared));
  assert.equal(withSharing(bytes, memory, true), bytes);
  const own = withSharing(bytes, memory, false);
  assert.ok(instance(own, ownMemory(memory)));
  assert.throws(() => instance(own, shared), WebAssembly.LinkError);
  assert.deepEqual(withSharing(own, memory, true), bytes);
  assert.deepEqual(bytes, importing(SHARED)); // the original module is unchanged
});

it("finds no memory in what imports none, and in what is no module", () => {
  const none = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0]);
  assert.ok(WebAssembly.validate(none));
  const module = importing(SHARED);
  for (const bytes of [none, Uint8Array.from([1]), module.slice(0, -1), module.slice(0, 20)]) {
    assert.equal(memoryImport(bytes), undefined);
  }
});

it("takes half of many processors, both of two, and eight at most", () => {
  const processors = [undefined, 1, 2, 3, 4, 6, 8, 16, 64];
  const here = defaultThreads(); // Node may or may not tell the number of processors
  const expected = [here, 1, 2, 2, 2, 3, 4, 8, 8];
  assert.deepEqual(
    processors.map((n) => defaultThreads(n)),
    expected,
  );
});
