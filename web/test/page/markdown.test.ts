/**
 * Tests Markdown in a browser, as both pages show it. WHERRY_PAGE is the page of Wherry's server,
 * from which the script is taken; CHROMIUM is the browser.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";

import { launched } from "./browser.js";

const PAGE = readFileSync(process.env["WHERRY_PAGE"] ?? "", "utf-8");
const [, SCRIPT = ""] = /\/\/ ---- Markdown: .*\n([^]*?)\/\/ ---- end of Markdown/.exec(PAGE) ?? [];

interface Shown {
  readonly MarkdownView: new (element: HTMLElement) => { show: (text: string) => void };
}
declare const markdown: Shown;

let browser: Browser;
let page: Page;
const urls: string[] = [];

before(async () => {
  browser = await launched();
  page = await browser.newPage();
  page.on("request", (request) => urls.push(request.url()));
  await page.setContent("<!doctype html><title>t</title><div id=box></div>");
  await page.addScriptTag({ content: SCRIPT });
});
after(() => browser.close());

/** Return the HTML of texts shown at once, and of the same texts grown character by character. */
function shown(texts: readonly string[]): Promise<(readonly [string, string])[]> {
  return page.evaluate((given) => {
    const plain = (box: HTMLElement): string =>
      box.innerHTML
        .replace(/ (tabindex|role|aria-label|target|rel|title)="[^"]*"/g, "")
        .replace(/<div class="bar"><span>(.*?)<\/span><button.*?<\/button><\/div>/g, "$1:")
        .replace(
          / (xmlns|stretchy|fence|lspace|rspace|form|movablelimits|data-limits)="[^"]*"/g,
          "",
        );
    return given.map((text) => {
      const complete = document.createElement("div");
      new markdown.MarkdownView(complete).show(text);
      const growing = document.createElement("div");
      const view = new markdown.MarkdownView(growing);
      for (let end = 1; end <= text.length; end += 1) view.show(text.slice(0, end));
      return [plain(complete), plain(growing)] as const;
    });
  }, texts);
}

const math = (inside: string): string => `<math>${inside}</math>`;
const block = (inside: string): string =>
  `<p><span class="math"><math display="block">${inside}</math></span></p>`;

const CASES: Readonly<Record<string, string>> = {
  "one *two* **three** ***four*** ~~five~~ `a*b*`":
    "<p>one <em>two</em> <strong>three</strong> <em><strong>four</strong></em> <del>five</del> <code>a*b*</code></p>",
  // These marks are no emphasis:
  "2 * 3 * 4 snake_case_name a*b \\*c\\* __d__ **e*":
    "<p>2 * 3 * 4 snake_case_name a*b *c* <strong>d</strong> *<em>e</em></p>",
  "a\nb\n\nc": "<p>a<br>b</p><p>c</p>",
  "# A\n### B #\ntext\n***": "<h3>A</h3><h5>B</h5><p>text</p><hr>",
  "- a\n- b\n  - c\n    1. d\n    2. e\n- f":
    "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p><ol><li><p>d</p></li><li><p>e</p></li></ol></li></ul></li><li><p>f</p></li></ul>",
  // Two spaces of indentation are enough for a nested list:
  "3. a\n   more\n\n   ```js\n   x\n     y\n   ```\n4. b\n  - c":
    '<ol start="3"><li><p>a<br>more</p><div class="block">js:<pre><code>x\n  y\n</code></pre></div></li><li><p>b</p><ul><li><p>c</p></li></ul></li></ol>',
  "- [ ] a\n- [x] b\n* c": "<ul><li><p>☐ a</p></li><li><p>☑ b</p></li><li><p>c</p></li></ul>",
  "Text:\n- a\n1986. b": "<p>Text:</p><ul><li><p>a<br>1986. b</p></li></ul>",
  "> a\nb\n> > c\n\nd":
    "<blockquote><p>a<br>b</p><blockquote><p>c</p></blockquote></blockquote><p>d</p>",
  "```\n\n<b>\n```\nafter":
    '<div class="block">text:<pre><code>\n&lt;b&gt;\n</code></pre></div><p>after</p>',
  "```py\ndef f(): # no 'text'\n  return 'it''s', 0x1F\n```":
    '<div class="block">py:<pre><code><span class="word">def</span> f(): ' +
    '<span class="comment"># no \'text\'</span>\n  <span class="word">return</span> ' +
    "<span class=\"text\">'it'</span><span class=\"text\">'s'</span>, " +
    '<span class="number">0x1F</span>\n</code></pre></div>',
  "```rs\n/* a\nlet b */ fn x<'a>(y: &'a str) {} // c\n":
    '<div class="block">rs:<pre><code><span class="comment">/*</span>' +
    '<span class="comment"> a\n</span><span class="comment">let b */</span> ' +
    "<span class=\"word\">fn</span> x&lt;'a&gt;(y: &amp;'a str) {} " +
    '<span class="comment">// c</span>\n</code></pre></div>',
  '```html\n<p id="a">don\'t <!-- <b>\n--> 1</p>\n```':
    '<div class="block">html:<pre><code>&lt;<span class="word">p</span> id=' +
    '<span class="text">"a"</span>&gt;don\'t <span class="comment">&lt;!--</span>' +
    '<span class="comment"> &lt;b&gt;\n</span><span class="comment">--&gt;</span> 1&lt;/' +
    '<span class="word">p</span>&gt;\n</code></pre></div>',
  "```sql\nSELECT 1 -- x\n```":
    '<div class="block">sql:<pre><code><span class="word">SELECT</span> ' +
    '<span class="number">1</span> <span class="comment">-- x</span>\n</code></pre></div>',
  "~~~py\na": '<div class="block">py:<pre><code>a\n</code></pre></div>',
  "| a | b |\n|:-:|---|\n| 1 | `x|y` |\n| \\| |\nafter":
    '<div class="table"><table><thead><tr><th class="center">a</th><th>b</th></tr></thead><tbody><tr><td class="center">1</td><td><code>x|y</code></td></tr><tr><td class="center">|</td><td></td></tr></tbody></table></div><p>after</p>',
  "a | b\n--|--:\n**1**|2<br>3":
    '<div class="table"><table><thead><tr><th>a</th><th class="right">b</th></tr></thead><tbody><tr><td><strong>1</strong></td><td class="right">2<br>3</td></tr></tbody></table></div>',
  // the second line has fewer columns, so this is no table
  "a | b\n--\nc": "<p>a | b<br>--<br>c</p>",
  '[a *b*](https://e.org/x "T") <https://e.org/y_z> https://e.org/(q)_r. (https://e.org/s)':
    '<p><a href="https://e.org/x">a <em>b</em></a> <a href="https://e.org/y_z">https://e.org/y_z</a> <a href="https://e.org/(q)_r">https://e.org/(q)_r</a>. (<a href="https://e.org/s">https://e.org/s</a>)</p>',
  "[m](mailto:a@e.org) ![cat](https://e.org/c.png) [x](y.md) [1] a]":
    '<p><a href="mailto:a@e.org">m</a> <a href="https://e.org/c.png">cat</a> [x](y.md) [1] a]</p>',
  "&lt;b&gt; &amp;amp; &bogus; a < b": "<p>&lt;b&gt; &amp;amp; &amp;bogus; a &lt; b</p>",
  "It costs $5 and $6, or $x$.": `<p>It costs $5 and $6, or ${math("<mi>x</mi>")}.</p>`,
  "\\(a_1^2\\)": `<p>${math("<msubsup><mi>a</mi><mn>1</mn><mn>2</mn></msubsup>")}</p>`,
  "$$\n\\frac{1}{2}\n$$": block("<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
  "\\[ \\sqrt[3]{x} \\]": block("<mroot><mi>x</mi><mn>3</mn></mroot>"),
  "$$never\n\nends": "<p>$$never</p><p>ends</p>",
  "$\\unheard{of}$": "<p><code>\\unheard{of}</code></p>",
};

describe("Markdown", () => {
  it("is shown, and the same when it grows", async () => {
    const rendered = await shown(Object.keys(CASES));
    for (const [at, [text, expected]] of Object.entries(CASES).entries()) {
      assert.equal(rendered[at]?.[0], expected, text);
      assert.equal(rendered[at]?.[1], expected, `growing: ${text}`);
    }
  });

  it("shows maths", async () => {
    const cases: Readonly<Record<string, string>> = {
      "\\sum_{i=1}^n x_i":
        "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><msub><mi>x</mi><mi>i</mi></msub>",
      "f'(x)": "<msup><mi>f</mi><mo>′</mo></msup><mo>(</mo><mi>x</mi><mo>)</mo>",
      "\\mathbb{R} \\mathcal{L}": "<mi>ℝ</mi><mi>ℒ</mi>",
      "\\left( a \\right]": "<mrow><mo>(</mo><mi>a</mi><mo>]</mo></mrow>",
      "3.14 \\ne -1": "<mn>3.14</mn><mo>≠</mo><mo>−</mo><mn>1</mn>",
      "\\text{if } x": "<mtext>if&nbsp;</mtext><mi>x</mi>",
      "\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}":
        "<mrow><mo>(</mo><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr><mtr><mtd><mi>c</mi></mtd><mtd><mi>d</mi></mtd></mtr></mtable><mo>)</mo></mrow>",
      "\\lim_{x \\to 0} \\hat{y}":
        '<munder><mo>lim</mo><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder><mover accent="true"><mi>y</mi><mo>^</mo></mover>',
    };
    const rendered = await shown(Object.keys(cases).map((text) => `$${text}$`));
    for (const [at, [text, expected]] of Object.entries(cases).entries()) {
      const inside = rendered[at]?.[0].replace(
        /^<p><math>(?:<mrow>(?!<mo>[([]))?|(?<!\])(?:<\/mrow>)?<\/math><\/p>$/g,
        "",
      );
      assert.equal(inside?.replace(/<\/mrow>$/, ""), expected.replace(/<\/mrow>$/, ""), text);
    }
  });

  it("lets nothing of a hostile text become more than text and links", async () => {
    const HOSTILE = [
      '<script>pwned = 1</script><img src=x onerror="pwned=1"><iframe src="https://evil.example">',
      "[a](javascript:pwned=1) [b](JAVASCRIPT:pwned=1) [c](data:text/html,<script>) [d](vbscript:x) [e](java\tscript:x)",
      "[f](<javascript:pwned=1>) <javascript:pwned=1> [g](//evil.example) [h](&#106;avascript:x) [i](file:///etc/passwd)",
      '[j](https://e.org/"onmouseover="pwned=1) ![k](https://evil.example/pixel.png) ![l](data:image/svg+xml,x)',
      '| <b onclick="pwned=1"> | [x](javascript:1) |\n|--|--|\n| <svg onload=pwned=1> | ![p](http://evil.example/a) |',
      "```<script>\npwned = 1\n```\n```js onload=x\n</code></pre><script>pwned=1</script>\n```",
      "$\\href{javascript:pwned=1}{x}$ $\\text{<img src=x onerror=pwned=1>}$ $\\class{a}{b} \\style{color:red}{x}$",
      "$\\begin{constructor}a\\end{constructor}$ $\\constructor \\toString \\__proto__$ &constructor;",
      '<a href="https://evil.example">x</a><style>*{display:none}</style><form action=https://evil.example><base href=//evil.example>',
    ];
    urls.length = 0;
    const rendered = await page.evaluate((texts) => {
      const box = document.createElement("div");
      document.body.append(box);
      new markdown.MarkdownView(box).show(texts.join("\n\n"));
      const all = [...box.querySelectorAll("*")];
      return {
        tags: [...new Set(all.map(({ localName }) => localName))],
        attributes: [...new Set(all.flatMap((one) => one.getAttributeNames()))],
        links: all.flatMap((one) =>
          one instanceof HTMLAnchorElement ? [[one.href, one.rel, one.target]] : [],
        ),
        text: box.innerText,
        pwned: "pwned" in globalThis,
      };
    }, HOSTILE);
    await page.waitForTimeout(200); // time in which a wrong page would fetch the pictures
    const TAGS = new Set(
      "p br a code div span button pre table thead tbody tr th td em strong".split(" "),
    );
    const MATHS = new Set("math mrow mi mo mn mtext mspace msub msup".split(" "));
    assert.deepEqual(
      rendered.tags.filter((tag) => !TAGS.has(tag) && !MATHS.has(tag)),
      [],
    );
    assert.deepEqual(
      rendered.attributes.filter((name) => /^on|^src|style|action|srcdoc/.test(name)),
      [],
    );
    assert.ok(rendered.links.length >= 3);
    for (const [href, rel, target] of rendered.links) {
      assert.match(href ?? "", /^(https?|mailto):/);
      assert.deepEqual([rel, target], ["noopener noreferrer nofollow", "_blank"]);
    }
    assert.match(rendered.text, /<script>pwned = 1<\/script>/);
    assert.ok(!rendered.pwned);
    assert.deepEqual(urls, []);
  });

  it("draws each line once while a text grows", async () => {
    const counts = await page.evaluate(() => {
      let count = 0;
      const { prototype } = Document;
      const create = Reflect.get(prototype, "createElement") as (...args: unknown[]) => unknown;
      Reflect.set(prototype, "createElement", function (this: Document, ...args: unknown[]) {
        count += 1;
        return create.apply(this, args);
      });
      const counted = (lines: number): number => {
        const one = [
          "- item **a**",
          "```",
          "x = 1",
          "```",
          "| a | b |",
          "|---|---|",
          "| 1 | 2 |",
          "",
          "A *line*.",
          "",
        ];
        const text = Array.from({ length: lines }, (_, at) => one[at % one.length]).join("\n");
        const list = Array.from({ length: lines }, (_, at) => `- item *${at}*`).join("\n");
        const before = count;
        for (const content of [text, list]) {
          const view = new markdown.MarkdownView(document.createElement("div"));
          for (let end = 7; end < content.length + 7; end += 7) view.show(content.slice(0, end));
        }
        return count - before;
      };
      return [counted(200), counted(800)];
    });
    const [few = 0, many = 0] = counts;
    assert.ok(few > 200 && many < 4.2 * few, `${few} elements, ${many} for four times the lines`);
  });

  it("takes no more than a little longer for a text that is made to take long", async () => {
    const SEEDS = [
      "*a ",
      "**a*",
      "_a *b ",
      "[",
      "[a](",
      "![",
      "`a ``b ",
      "$a ",
      "\\(",
      "<",
      "~~a",
      "$$",
      "a|",
      "https://a)",
      "> ",
      "- ",
      "1. ",
      "#",
      "***",
      "{",
      "&",
      "|-",
    ];
    const CODE = ["'\\", '"', "/*", "`", "1_", "='", "don't "];
    const slow = await page.evaluate(
      ([seeds, code]) => {
        const seconds = (text: string): number => {
          const begun = performance.now();
          new markdown.MarkdownView(document.createElement("div")).show(text);
          return performance.now() - begun;
        };
        const least = (text: string): number =>
          Math.min(seconds(text), seconds(text), seconds(text));
        const wrong: string[] = [];
        for (const seed of [...seeds, ...seeds.map((one) => `${one}\n`)]) {
          const few = least(seed.repeat(2_000));
          const many = least(seed.repeat(16_000));
          if (many > 24 * Math.max(few, 8))
            wrong.push(`${seed}: ${few} ms, ${many} ms for eight times as much`);
        }
        for (const seed of code) {
          for (const language of ["c", "html"]) {
            const [few, many] = [2_000, 16_000].map((times) =>
              least(`\`\`\`${language}\n${seed.repeat(times)}\n`),
            ) as [number, number];
            if (many > 24 * Math.max(few, 8))
              wrong.push(`${language} ${seed}: ${few} ms, ${many} ms for eight times as much`);
          }
        }
        const deep = ["{", "\\frac{", "\\hat", "\\left(", "\\begin{cases}", "x^{", "\\sqrt["];
        // deep nesting must not overflow the stack
        for (const one of deep) seconds(`$${one.repeat(1000)}$`);
        return wrong;
      },
      [SEEDS, CODE] as const,
    );
    assert.deepEqual(slow, []);
  });
});
