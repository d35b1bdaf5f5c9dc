// Measures the time from navigation to the first token of the demo's answer, as a person sees it:
// cold (nothing is cached: page and model come over the network) and warm (the next visit).
//
// Usage: node bench/first_token.js URL [--runs 5] [--gpu]
//
// URL is a site that `wherry web` serves. --gpu uses WebGPU, on SwiftShader if there is no GPU.
// CHROMIUM names the browser. Prints JSON: medians in milliseconds since navigation, and all runs.
import { chromium } from "playwright-core";

const [, , url, ...flags] = process.argv;
if (url === undefined) {
  console.error("usage: node bench/first_token.js URL [--runs N] [--gpu]");
  process.exit(2);
}
const runs = flags.includes("--runs") ? Number(flags[flags.indexOf("--runs") + 1]) : 5;
const args = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"];
if (flags.includes("--gpu"))
  args.push("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args,
});
const cold = [];
const warm = [];
for (let run = 0; run < runs; run++) {
  const context = await browser.newContext();
  cold.push(await visit(context));
  warm.push(await visit(context));
  await context.close();
}
const version = browser.version();
await browser.close();
console.log(
  JSON.stringify({ browser: version, cold: summary(cold), warm: summary(warm) }, null, 2),
);

/**
 * Runs in the page: sends a question as soon as possible, and notes when the first piece of the
 * answer is shown.
 */
function watch() {
  localStorage.clear(); // a conversation that an earlier visit has left
  const marks = (globalThis.marks = {});
  const look = () => {
    const dot = document.querySelector("#model-dot");
    marks.failed ??= dot?.classList.contains("failed") ? performance.now() : undefined;
    if (marks.ready === undefined && dot?.classList.contains("ready")) {
      marks.ready = performance.now();
      const text = document.querySelector("#text");
      text.value = "Tell me a story about a fox.";
      document.querySelector("#ask").requestSubmit();
    }
    if (marks.first === undefined && document.querySelector("article .body")?.textContent) {
      marks.first = performance.now();
    }
  };
  new MutationObserver(look).observe(document, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
  });
}

async function visit(context) {
  const page = await context.newPage();
  await page.addInitScript(watch);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.marks.first ?? globalThis.marks.failed, null, {
    timeout: 600_000,
  });
  const marks = await page.evaluate(() => globalThis.marks);
  await page.close();
  if (marks.failed !== undefined) throw new Error("the model could not be loaded");
  return { ready: Math.round(marks.ready), first: Math.round(marks.first) };
}

function summary(all) {
  const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  return {
    ready_ms: median(all.map(({ ready }) => ready)),
    first_token_ms: median(all.map(({ first }) => first)),
    runs: all,
  };
}
