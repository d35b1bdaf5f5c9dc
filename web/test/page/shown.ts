/** Reads what a page shows, for both chat pages: its whole text, and its targets for fingers. */
import axe from "axe-core";
import type { Page } from "playwright-core";

/**
 * Return all text that a person sees on a page, in the order of the document, without white space
 * and without the parts that a selector matches.
 */
export function visibleText(page: Page, without: string): Promise<string> {
  return page.evaluate((left) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts: string[] = [];
    while (walker.nextNode()) {
      const { parentElement: parent, textContent } = walker.currentNode;
      if (!parent || parent.closest(`.sr, script, style, option, ${left}`)) continue;
      if (parent.checkVisibility({ checkVisibilityCSS: true })) texts.push(textContent ?? "");
    }
    return texts.join("").replace(/\s+/g, "");
  }, without);
}

/** Return what is visible to be touched, outside of prose, and smaller than 44 by 44 pixels. */
export function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const selector = "button, a[href], input, select, textarea, summary";
    return [...document.querySelectorAll<HTMLElement>(selector)]
      .filter((one) => one.checkVisibility({ checkVisibilityCSS: true }) && !one.closest(".body a"))
      .map((one) => ({ one, box: one.getBoundingClientRect() }))
      .filter(({ box }) => box.width < 44 || box.height < 44)
      .map(({ one, box }) => `${one.outerHTML.slice(0, 90)}: ${box.width} x ${box.height}`);
  });
}

/** Return the accessibility violations of a page. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const results = await page.evaluate(async () => {
    const { axe: tool } = globalThis as unknown as { axe: typeof axe };
    return (await tool.run()).violations;
  });
  return results.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}
