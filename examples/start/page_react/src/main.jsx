import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

import { useModel } from "./use_model.js";

const DEMO = new URL("models/demo/", document.baseURI).href;

function Page() {
  const { state, ready, text, ask } = useModel(DEMO);
  const [question, setQuestion] = useState("What is the capital of France?");
  const submit = (event) => {
    event.preventDefault();
    void ask(question);
  };
  return (
    <>
      <form onSubmit={submit}>
        <input
          aria-label="Question"
          value={question}
          onChange={(event) => setQuestion(event.target.value)}
        />
        <button disabled={!ready}>Ask</button>
      </form>
      <p role="status">{text || state}</p>
    </>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
