/** A headless Chromium for tests; CHROMIUM is its path. */
import { type Browser, chromium } from "playwright-core";

const ALWAYS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"];
/** WebGPU on a CPU. */
export const SWIFTSHADER = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

/** A browser with further flags. */
export function launched(flags: readonly string[] = []): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? "";
  return chromium.launch({ executablePath, args: [...ALWAYS, ...flags] });
}
