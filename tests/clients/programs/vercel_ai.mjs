// Vercel's AI SDK with its provider for OpenAI-compatible servers.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateObject, generateText, jsonSchema, streamText, tool } from "ai";

const server = createOpenAICompatible({
  name: "wherry",
  baseURL: `${process.env.SERVER_URL}/v1`,
  apiKey: process.env.SERVER_KEY,
  supportsStructuredOutputs: true,
});
const greedy = {
  model: server("demo"),
  prompt: "How many legs has a spider?",
  temperature: 0,
  maxOutputTokens: 32,
  maxRetries: 0,
};
const seen = {};

seen.chat = (await generateText(greedy)).text;
seen.streamed = "";
for await (const piece of streamText(greedy).textStream) seen.streamed += piece;
const called = await generateText({
  ...greedy,
  maxOutputTokens: 128,
  toolChoice: "required",
  tools: {
    get_weather: tool({
      inputSchema: jsonSchema({
        type: "object",
        properties: { city: { type: "string", maxLength: 10 } },
        required: ["city"],
        additionalProperties: false,
      }),
    }),
  },
});
seen.tool = [called.toolCalls[0].toolName, called.toolCalls[0].input];
const { object } = await generateObject({
  ...greedy,
  maxOutputTokens: 256,
  schema: jsonSchema({
    type: "object",
    properties: { legs: { type: "integer", minimum: 0, maximum: 8 } },
    required: ["legs"],
    additionalProperties: false,
  }),
});
seen.structured = object;
const { embeddings } = await embedMany({
  model: server.textEmbeddingModel("demo"),
  values: ["a fox", "a spider"],
});
seen.embeddings = embeddings.map((e) => e.length);
try {
  await generateText({ ...greedy, model: server("nobody") });
} catch (e) {
  seen.errors = { unknown_model: [e.name, e.statusCode] };
}
console.log(JSON.stringify(seen));
