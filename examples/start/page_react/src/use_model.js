import { useCallback, useEffect, useRef, useState } from "react";
import { connect } from "wherry/worker";

/** A model in a worker: what it says, and a function that asks it. One request at a time. */
export function useModel(address) {
  const engine = useRef(null);
  const [state, setState] = useState("The model is loading …");
  const [ready, setReady] = useState(false);
  const [text, setText] = useState("");

  useEffect(() => {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    engine.current = connect(worker);
    let left = false;
    engine.current.load(address).then(
      ({ name, device }) => {
        if (left) return;
        setState(`${name} runs on ${device}.`);
        setReady(true);
      },
      (error) => left || setState(error.message),
    );
    return () => {
      left = true;
      worker.terminate();
    };
  }, [address]);

  const ask = useCallback(async (content) => {
    setReady(false);
    setText("");
    const messages = [{ role: "user", content }];
    const options = { messages, stream: true, temperature: 0 };
    for await (const chunk of await engine.current.chat.completions.create(options)) {
      setText((text) => text + (chunk.choices[0]?.delta.content ?? ""));
    }
    setReady(true);
  }, []);
  return { state, ready, text, ask };
}
