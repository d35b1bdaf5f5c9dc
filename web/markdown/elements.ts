/** Creates elements of the page; text from a model becomes text nodes only, never HTML. */
type Child = string | Node;

/** Create an HTML element with a class, which may be empty. */
export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  kind = "",
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  if (kind) created.className = kind;
  created.append(...children);
  return created;
}

const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);

/**
 * Create a link that opens a new tab without a referrer; undefined for addresses that are not http.
 */
export function link(address: string): HTMLAnchorElement | undefined {
  if (!/^(https?:\/\/|mailto:)/i.test(address) || !URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (!PROTOCOLS.has(url.protocol)) return undefined;
  const anchor = html("a");
  anchor.href = url.href;
  anchor.title = url.href; // shows the real address, because the link's text may claim another one
  anchor.target = "_blank";
  anchor.rel = "noopener noreferrer nofollow";
  return anchor;
}

/** Create a button that copies the text that the callback returns when it is clicked. */
export function copyButton(text: () => string): HTMLButtonElement {
  const button = html("button", "", "Copy");
  button.type = "button";
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(text()).then(
      () => {
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1200);
      },
      () => undefined, // the browser gave no permission to copy
    );
  });
  return button;
}
