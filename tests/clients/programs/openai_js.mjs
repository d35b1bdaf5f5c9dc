// OpenAI's client for JavaScript.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.env.SERVER_URL}/v1`,
  apiKey: process.env.SERVER_KEY,
  maxRetries: 0,
});
const greedy = {
  model: "demo",
  messages: [{ role: "user", content: "How many legs has a spider?" }],
  temperature: 0,
  max_tokens: 32,
};
const tool = {
  type: "function",
  function: {
    name: "get_weather",
    strict: true,
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 10 } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};
const schema = {
  type: "object",
  properties: { legs: { type: "integer", minimum: 0, maximum: 8 } },
  required: ["legs"],
  additionalProperties: false,
};
const seen = {};

const answer = await client.chat.completions.create(greedy);
seen.chat = answer.choices[0].message.content;
seen.streamed = "";
for await (const chunk of await client.chat.completions.create({ ...greedy, stream: true })) {
  seen.streamed += chunk.choices[0]?.delta?.content ?? "";
}
const runner = client.chat.completions.stream({
  ...greedy,
  max_tokens: 128,
  tools: [tool],
  tool_choice: "required",
});
const called = await runner.finalChatCompletion();
const call = called.choices[0].message.tool_calls[0];
seen.tool = [call.function.name, JSON.parse(call.function.arguments)];
const structured = await client.chat.completions.create({
  ...greedy,
  max_tokens: 256,
  response_format: { type: "json_schema", json_schema: { name: "legs", schema, strict: true } },
});
seen.structured = JSON.parse(structured.choices[0].message.content);
const embedded = await client.embeddings.create({ model: "demo", input: ["a fox", "a spider"] });
seen.embeddings = embedded.data.map((e) => e.embedding.length);
seen.errors = {};
for (const [what, fields] of Object.entries({
  unknown_model: { model: "nobody" },
  temperature: { temperature: -1 },
})) {
  try {
    await client.chat.completions.create({ ...greedy, ...fields });
  } catch (e) {
    seen.errors[what] = [e.constructor.name, e.status, e.code];
  }
}
console.log(JSON.stringify(seen));
