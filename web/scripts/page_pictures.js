/* global document, fetch, createImageBitmap -- of the page */
// Pictures of the demo page for the README: node scripts/page_pictures.js ADDRESS FOLDER. CHROMIUM is
// the browser.
import { Buffer } from "node:buffer";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { chromium } from "playwright-core";

const [address, folder] = process.argv.slice(2);
const VIEWPORT = { width: 1100, height: 720 };
const QUESTIONS = ["Tell me a story about a fox.", "How many legs has a spider?"];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: VIEWPORT, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(address);
  await page.waitForSelector("#model-dot.ready");
  await page.click("#tune");
  await page.fill("#seed", "1");
  await page.click("#tune-dialog .primary");
  for (const [before, question] of QUESTIONS.entries()) {
    await page.fill("#text", question);
    await page.press("#text", "Enter");
    await page.waitForFunction((n) => document.querySelectorAll(".foot").length > n, before);
  }
  await save(page, `chat-${colorScheme}`);
  await page.click('a[href="#engine"]');
  await page.click("#crowd-start");
  await page.waitForTimeout(20_000); // the curve is drawn over time
  await page.waitForFunction(() =>
    document.querySelector("#batch-note").textContent.startsWith("4"),
  );
  await save(page, `engine-${colorScheme}`);
  await context.close();
}
await browser.close();

/** Write what the page shows as WebP, a quarter of the size of PNG. */
async function save(page, name) {
  const png = await page.screenshot({ animations: "disabled" });
  const blank = await browser.newPage();
  const webp = await blank.evaluate(
    async (source) => {
      const picture = await createImageBitmap(await (await fetch(source)).blob());
      const canvas = document.createElement("canvas");
      canvas.width = picture.width;
      canvas.height = picture.height;
      canvas.getContext("2d").drawImage(picture, 0, 0);
      return canvas.toDataURL("image/webp", 0.9);
    },
    `data:image/png;base64,${png.toString("base64")}`,
  );
  await writeFile(join(folder, `${name}.webp`), Buffer.from(webp.split(",")[1], "base64"));
  await blank.close();
}
