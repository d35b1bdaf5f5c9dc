/**
 * Tests the page of `wherry package --target webgpu` on a GPU, here SwiftShader, which has no
 * shader-f16. WHERRY_SITE is its address on a static server, WHERRY_SHOTS a folder for screenshots,
 * CHROMIUM the browser. All tests share one page, so that pipelines are built once.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser } from "playwright-core";

import { launched, SWIFTSHADER } from "./browser.js";
import { DemoPage } from "./demo_page.js";

let browser: Browser;
let demo: DemoPage;

before(async () => {
  browser = await launched(SWIFTSHADER);
  demo = await DemoPage.open(browser, process.env["WHERRY_SITE"] ?? "");
});
after(() => browser.close());

describe("a packaged site", () => {
  it("takes the variant that this GPU can run, and answers", async () => {
    await demo.ready();
    assert.match(await demo.ask("What is the capital of France?"), /Paris/);
    assert.equal(await demo.number("runs on"), "GPU");
    await demo.shot("gpu-chat");
  });

  it("shows text as it comes, and stops", async () => {
    await demo.begin("Tell me a long story about a fox.", 20);
    await demo.page.click("#send");
    await demo.page.waitForFunction(() => document.querySelectorAll(".foot").length === 2);
    assert.match(await demo.foot(), /stopped/);
  });

  it("shows how many kernels a step takes, and frees what it had", async () => {
    await demo.page.click('nav a[href="#engine"]');
    const kernels = Number(await demo.number("Kernels per step"));
    // the model has six layers
    assert.ok(kernels > 0 && kernels <= 4 * 6 + 8, `${kernels} kernels`);
    await demo.page.waitForFunction(() => {
      const tiles = [...document.querySelectorAll("#tiles div")];
      const batch = tiles.find((tile) => tile.textContent.startsWith("In the batch"));
      // the page updates this number only from time to time
      return batch?.querySelector("dd")?.textContent.startsWith("0");
    });
    await demo.shot("gpu-engine");
    assert.deepEqual(demo.wrong, []);
  });
});
