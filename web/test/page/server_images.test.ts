/**
 * Tests how the server's chat page sends images, over a scripted server. WHERRY_SHOTS is a folder
 * for screenshots, CHROMIUM the browser.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";

import { launched } from "./browser.js";
import { PHONE, WIDE } from "./demo_page.js";
import { ScriptedServer } from "./scripted_server.js";
import { smallTargets, violations, visibleText } from "./shown.js";

const SHOTS = process.env["WHERRY_SHOTS"] ?? "";
const NONE = "small does not read images.";

interface File {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

let browser: Browser;
let context: BrowserContext;
let page: Page;
let server: ScriptedServer;
const files: Record<"red" | "green" | "blue" | "tall", File> = Object.create(null) as never;

before(async () => {
  server = await ScriptedServer.start();
  server.models = [
    { id: "small", root: "small", input_modalities: ["text"] },
    { id: "seeing", root: "seeing", input_modalities: ["text", "image"] },
  ];
  browser = await launched();
  context = await browser.newContext({ viewport: WIDE, colorScheme: "light" });
  page = await server.open(context);
  files.red = await drawn("red", 300, 200);
  files.green = await drawn("green", 40, 40, "image/jpeg");
  files.blue = await drawn("blue", 640, 480, "image/webp");
  files.tall = await drawn("teal", 30, 900);
});
after(async () => {
  await browser.close();
  server.close();
});

/** Return an image file that the browser draws. */
async function drawn(
  colour: string,
  width: number,
  height: number,
  type = "image/png",
): Promise<File> {
  const url = await page.evaluate(
    ({ colour, width, height, type }) => {
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width, height });
      const context = canvas.getContext("2d");
      if (!context) throw new Error("no canvas");
      context.fillStyle = colour;
      context.fillRect(0, 0, width, height);
      context.fillStyle = "white";
      context.fillRect(width / 4, height / 4, width / 2, height / 2);
      return canvas.toDataURL(type);
    },
    { colour, width, height, type },
  );
  const [head, data = ""] = url.split(",");
  assert.equal(head, `data:${type};base64`);
  return {
    name: `${colour}.${type.slice(6)}`,
    mimeType: type,
    buffer: Buffer.from(data, "base64"),
  };
}

/** Paste or drop files, as a browser says it to the page. */
async function give(kind: "paste" | "drop", ...given: File[]): Promise<void> {
  const plain = given.map(({ name, mimeType, buffer }) => ({
    name,
    type: mimeType,
    data: buffer.toString("base64"),
  }));
  await page.evaluate(
    ({ kind, plain }) => {
      const data = new DataTransfer();
      for (const { name, type, data: text } of plain) {
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        data.items.add(new File([bytes], name, { type }));
      }
      const options = { bubbles: true, cancelable: true };
      const event =
        kind === "paste"
          ? new ClipboardEvent("paste", { ...options, clipboardData: data })
          : new DragEvent("drop", { ...options, dataTransfer: data });
      (document.activeElement ?? document).dispatchEvent(event);
    },
    { kind, plain },
  );
}

/** Choose files with the button of a form. */
async function choose(form: string, ...given: File[]): Promise<void> {
  const chooser = page.waitForEvent("filechooser");
  await page.locator(form).getByRole("button", { name: "Attach images" }).click();
  await (await chooser).setFiles(given);
}

/** Wait until a list shows these images, by name, in order. */
async function shows(list: string, ...names: string[]): Promise<void> {
  await page.waitForFunction(
    ({ list, names }) => {
      const images = [...document.querySelectorAll<HTMLImageElement>(`${list} img`)];
      return (
        images.map((image) => image.alt).join() === names &&
        images.every((image) => image.complete && image.naturalWidth > 0)
      );
    },
    { list, names: names.join() },
  );
}

function part({ mimeType, buffer }: File): object {
  const url = `data:${mimeType};base64,${buffer.toString("base64")}`;
  return { type: "image_url", image_url: { url } };
}

function text(said: string): object {
  return { type: "text", text: said };
}

/** Return the contents of the messages of the user in the last request. */
function sent(): unknown[] {
  const messages = server.requests.at(-1)?.messages ?? [];
  return messages.filter(({ role }) => role === "user").map(({ content }) => content);
}

async function answered(words: string): Promise<void> {
  await server.arrived();
  server.say(words);
  server.end();
  const last = page.locator("#talk > .assistant:last-child").filter({ hasText: words });
  await last.getByText("7 tokens").waitFor();
}

async function shot(name: string): Promise<void> {
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: "disabled" });
}

async function showsExactly(...texts: readonly string[]): Promise<void> {
  const expected = ["Wherry", ...texts].join("").replace(/\s+/g, "");
  const seen = await visibleText(page, "#numbers");
  assert.equal(seen.replace(/·firstafter\d+ms/g, ""), expected);
}

describe("images on the page of the server", () => {
  it("takes none for a model that does not read them", async () => {
    assert.ok(await page.locator("#attach").isHidden());
    for (const kind of ["paste", "drop"] as const) {
      await page.focus("#text");
      await give(kind, files.red);
      await page.locator("#ask .hint").getByText(NONE).waitFor();
      await shows("#ask .images");
    }
    await shot("server-images-none");
    await page.fill("#text", "How many?");
    await page.press("#text", "Enter");
    await answered("Two.");
    assert.deepEqual(sent(), ["How many?"]);
    await showsExactly("How many? Two. Copy Another answer 7 tokens");
    await page.click("#fresh");
  });

  it("attaches what is chosen, pasted and dropped, and shows it before it is sent", async () => {
    await page.selectOption("#model", "seeing");
    await choose("#ask", files.red, files.green);
    await shows("#ask .images", "red.png", "green.jpeg");
    await page.focus("#text");
    await give("paste", files.tall);
    await give("drop", files.blue);
    await shows("#ask .images", "red.png", "green.jpeg", "teal.png", "blue.webp");
    assert.deepEqual(await violations(page), []);
    await shot("server-images-attached");
    await page.getByRole("button", { name: "Remove green.jpeg" }).click();
    await page.getByRole("button", { name: "Remove teal.png" }).press("Enter");
    await shows("#ask .images", "red.png", "blue.webp");
  });

  it("says which files it does not take", async () => {
    await give("drop", { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("hi") });
    const hint = page.locator("#ask .hint");
    await hint.getByText("notes.txt is not a JPEG, PNG, WebP or GIF.").waitFor();
    await page.evaluate(() => {
      const data = new DataTransfer();
      data.items.add(
        new File([new Uint8Array(20 * 2 ** 20 + 1)], "big.png", { type: "image/png" }),
      );
      document.dispatchEvent(new DragEvent("drop", { dataTransfer: data }));
    });
    await hint.getByText("big.png has more than 20 MiB.").waitFor();
    await shows("#ask .images", "red.png", "blue.webp");
    assert.deepEqual(await violations(page), []);
    await shot("server-images-refused");
  });

  it("leaves pasted text to the field, though a word processor adds a picture of it", async () => {
    const prevented = await page.evaluate(() => {
      const data = new DataTransfer();
      data.setData("text/plain", "words");
      data.items.add(new File(["x"], "image.png", { type: "image/png" }));
      const options = { bubbles: true, cancelable: true, clipboardData: data };
      return !document.dispatchEvent(new ClipboardEvent("paste", options));
    });
    assert.ok(!prevented);
    await shows("#ask .images", "red.png", "blue.webp");
  });

  it("waits for a model that reads images, if another is chosen", async () => {
    await page.fill("#text", "What is it?");
    await page.selectOption("#model", "small");
    await page.locator("#ask .hint").getByText(NONE).waitFor();
    assert.ok(await page.locator("#send").isDisabled());
    await page.press("#text", "Enter");
    await shows("#ask .images", "red.png", "blue.webp");
    await page.selectOption("#model", "seeing");
    assert.ok(await page.locator("#ask .hint").isHidden());
  });

  it("sends the bytes of the files, before the text, and keeps them for later turns", async () => {
    await page.press("#text", "Enter");
    await answered("A red one and a blue one.");
    const first = [part(files.red), part(files.blue), text("What is it?")];
    assert.deepEqual(sent(), [first]);
    await shows("#talk .images", "red.png", "blue.webp");
    assert.ok(await page.locator("#ask .images").isHidden());
    const shown = "What is it? A red one and a blue one. Copy";
    await showsExactly(shown, "Another answer 7 tokens");
    await shot("server-images-turn");
    await choose("#ask", files.green);
    await shows("#ask .images", "green.jpeg");
    await page.click("#send");
    await answered("Green.");
    assert.deepEqual(sent(), [first, [part(files.green)]]);
    await showsExactly(shown, "7 tokens Green. Copy Another answer 7 tokens");
    await page.getByRole("button", { name: "Another answer" }).click();
    await answered("Leaves.");
    assert.deepEqual(sent(), [first, [part(files.green)]]);
  });

  it("has them when its tab is opened again", async () => {
    const seen = await visibleText(page, "#numbers");
    await page.close();
    page = await server.open(context);
    await shows("#talk .images", "red.png", "blue.webp", "green.jpeg");
    assert.equal(await visibleText(page, "#numbers"), seen);
    await page.selectOption("#model", "seeing");
    await page.getByRole("button", { name: "Another answer" }).click();
    await answered("A leaf.");
    assert.deepEqual(sent()[1], [part(files.green)]);
  });

  it("edits the images of a message", async () => {
    await page.getByRole("button", { name: "Edit" }).first().click();
    await shows(".edit .images", "red.png", "blue.webp");
    await page.getByRole("button", { name: "Remove red.png" }).click();
    await choose(".edit", files.tall);
    await give("paste", files.green);
    await shows(".edit .images", "blue.webp", "teal.png", "green.jpeg");
    assert.deepEqual(await violations(page), []);
    await shot("server-images-edit");
    await page.keyboard.press("Escape");
    await shows("#talk .images", "red.png", "blue.webp", "green.jpeg");
    await page.getByRole("button", { name: "Edit" }).first().click();
    await page.getByRole("button", { name: "Remove red.png" }).click();
    await choose(".edit", files.tall);
    await shows(".edit .images", "blue.webp", "teal.png");
    await page.locator(".edit textarea").fill("And these?");
    await page.keyboard.press("Enter");
    await answered("Two.");
    assert.deepEqual(sent(), [[part(files.blue), part(files.tall), text("And these?")]]);
    await showsExactly("And these? Two. Copy Another answer 7 tokens");
  });

  it("shows what the server says against an image", async () => {
    const reason = "messages[0].content[0].image_url.url: the image cannot be read: it is damaged";
    server.failure = reason;
    await page.getByRole("button", { name: "Another answer" }).click();
    await page.getByRole("alert").getByText(reason).waitFor();
    await showsExactly("And these?", reason, "Try again");
    await shot("server-images-failure");
    assert.match(server.wrong.splice(0).join(), /^Failed to load resource.* 400 /);
  });

  it("sends nothing in the place of an image that the browser has lost", async () => {
    await page.evaluate(async () => {
      const opening = indexedDB.open("wherry", 1);
      await new Promise((resolve) => (opening.onsuccess = resolve));
      const change = opening.result.transaction("images", "readwrite");
      change.objectStore("images").clear();
      await new Promise((resolve) => (change.oncomplete = resolve));
    });
    await page.reload();
    await page.getByText("teal.png is not stored any more").waitFor();
    const before = server.requests.length;
    await page.fill("#text", "And now?");
    await page.press("#text", "Enter");
    const reason = "blue.webp is not stored any more: edit its message, or start a new chat.";
    await page.getByRole("alert").getByText(reason).waitFor();
    await shot("server-images-lost");
    assert.equal(server.requests.length, before);
  });

  it("is there for everybody: light and dark, wide and on a phone", async () => {
    await page.close();
    for (const colorScheme of ["light", "dark"] as const) {
      for (const [kind, viewport] of Object.entries({ wide: WIDE, phone: PHONE })) {
        const touch = kind === "phone" ? { hasTouch: true, isMobile: true } : {};
        const own = await browser.newContext({ viewport, colorScheme, ...touch });
        page = await server.open(own);
        await page.selectOption("#model", "seeing");
        await choose("#ask", files.red, files.green, files.tall);
        await page.fill("#text", "Which of them is the largest?");
        await shows("#ask .images", "red.png", "green.jpeg", "teal.png");
        await page.click("#send");
        await answered("The last.");
        await choose("#ask", files.blue, files.red, files.green, files.tall, files.blue, files.red);
        await shows(
          "#ask .images",
          ...["blue.webp", "red.png", "green.jpeg", "teal.png", "blue.webp", "red.png"],
        );
        assert.deepEqual(await violations(page), []);
        if (kind === "phone") assert.deepEqual(await smallTargets(page), []);
        await shot(`server-images-${colorScheme}-${kind}`);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.ok(!wider, "the page is wider than the screen");
        await own.close();
      }
    }
  });

  it("has no errors of its own", () => {
    assert.deepEqual(server.wrong, []);
  });
});
