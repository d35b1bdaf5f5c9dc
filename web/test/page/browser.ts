/** Starts a headless Chromium for tests; CHROMIUM is the path of its program. */
import { type Browser, chromium } from "playwright-core";

const ALWAYS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"];
/** Flags for WebGPU on a CPU (SwiftShader). */
export const SWIFTSHADER = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

/** Start a browser with additional flags. */
export function launched(flags: readonly string[] = []): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? "";
  return chromium.launch({ executablePath, args: [...ALWAYS, ...flags] });
}
