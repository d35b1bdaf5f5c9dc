import { connect } from "wherry/worker";

const form = document.querySelector("form");
const button = document.querySelector("button");
const answer = document.querySelector("p");

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const engine = connect(worker);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  answer.textContent = "";
  const messages = [{ role: "user", content: form.elements.question.value }];
  const stream = await engine.chat.completions.create({ messages, stream: true, temperature: 0 });
  for await (const chunk of stream) answer.textContent += chunk.choices[0]?.delta.content ?? "";
  button.disabled = false;
});

try {
  const { name, device } = await engine.load(new URL("models/demo/", document.baseURI).href);
  answer.textContent = `${name} runs on ${device}.`;
  button.disabled = false;
} catch (error) {
  answer.textContent = error.message;
}
