/** Functions that answers call: told to models, read from what they write. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { ChatMessageParam, FunctionTool, ToolCall } from "../src/index.js";
import { CallReader } from "../src/tools/call_reader.js";
import { conversation, type PlainMessage } from "../src/tools/conversation.js";
import { knowsTools } from "../src/tools/written_calls.js";

const WEATHER: FunctionTool = {
  type: "function",
  function: { name: "weather", parameters: { properties: { city: { type: "string" } } } },
};
const CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Ulm"}}\n</tool_call>';
const OTHER = '<tool_call>{"name": "time", "arguments": {}}</tool_call>';

/** Everything that comes of a text that is cut after each `step` characters. */
function read(text: string, step: number, several = true): { text: string; calls: string[] } {
  const reader = new CallReader(several);
  const all: { text: string; calls: string[] } = { text: "", calls: [] };
  const take = (piece: string, last: boolean): void => {
    const part = reader.push(piece, last);
    all.text += part.text;
    all.calls.push(...part.calls.map(({ function: { name, arguments: a } }) => `${name}${a}`));
  };
  for (let at = 0; at < text.length; at += step) take(text.slice(at, at + step), false);
  take("", true);
  return all;
}

describe("what a model writes", () => {
  const cases: [written: string, text: string, calls: string[]][] = [
    ["Nothing to call, <tool", "Nothing to call, <tool", []],
    [CALL, "", ['weather{"city":"Ulm"}']],
    [`I look.\n\n${CALL}\n${OTHER}\n`, "I look.", ['weather{"city":"Ulm"}', "time{}"]],
    [`${CALL}\n\nSo it is. `, "So it is.", ['weather{"city":"Ulm"}']],
    [`\n${CALL}`, "", ['weather{"city":"Ulm"}']],
    [`One. ${OTHER}\nTwo.`, "One. Two.", ["time{}"]],
    [`One.${OTHER}\n${OTHER} Two. `, "One.\nTwo.", ["time{}", "time{}"]],
    ["a <tool_call>no JSON</tool_call> b", "a <tool_call>no JSON</tool_call> b", []],
    [OTHER.slice(0, -12), "", ["time{}"]], // the end was cut off
    ['x <tool_call>{"name": "ti', 'x <tool_call>{"name": "ti', []],
    ['<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>', "", ['f{"a": 1}']],
  ];
  for (const [written, text, calls] of cases) {
    it(`is text and calls, however it comes: ${JSON.stringify(written)}`, () => {
      for (const step of [1, 2, 3, 7, 1000]) {
        assert.deepEqual(read(written, step), { text, calls }, `in pieces of ${step}`);
      }
    });
  }

  it("has one call where one was asked for", () => {
    assert.deepEqual(read(CALL + OTHER, 5, false).calls, ['weather{"city":"Ulm"}']);
  });
});

describe("what a template is told", () => {
  const call: ToolCall = {
    id: "call_1",
    type: "function",
    function: { name: "weather", arguments: '{"city": "Ulm"}' },
  };
  const chat: ChatMessageParam[] = [
    { role: "user", content: "How is the weather?" },
    { role: "assistant", content: "", tool_calls: [call] },
    { role: "tool", content: "sunny", tool_call_id: "call_1" },
    { role: "tool", content: "windy", tool_call_id: "call_1" },
  ];
  const plain = chat as PlainMessage[];

  it("is tools, calls and results where it knows of them", () => {
    assert.ok(knowsTools("... <tool_call>\\n{{ call | tojson }} ..."));
    assert.ok(!knowsTools("... <tool_call><function= ..."));
    const { messages, tools } = conversation(plain, [WEATHER], true);
    assert.deepEqual(messages[1]?.["tool_calls"], [
      { id: "call_1", type: "function", function: { name: "weather", arguments: { city: "Ulm" } } },
    ]);
    assert.equal(messages[2]?.role, "tool");
    const parameters = { type: "object", ...WEATHER.function.parameters };
    assert.deepEqual(tools, [{ type: "function", function: { name: "weather", parameters } }]);
  });

  it("is words where it does not", () => {
    const { messages, tools } = conversation(plain, [WEATHER], false);
    assert.equal(tools, null);
    assert.deepEqual(
      messages.map(({ role }) => role),
      ["system", "user", "assistant", "user"],
    );
    assert.match(messages[0]?.content ?? "", /"name":"weather".*<tool_call>\n\{"name": "NAME"/s);
    assert.equal(messages[2]?.content, CALL);
    assert.equal(messages[3]?.content, "Result of weather:\nsunny\n\nResult of weather:\nwindy");
    assert.deepEqual(conversation(plain.slice(0, 1), [], false).messages, plain.slice(0, 1));
  });
});
