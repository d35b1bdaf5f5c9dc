/** Elements of the page; what a model wrote becomes text nodes and nothing else. */
type Child = string | Node;

/** An element of HTML with a class, which may be empty. */
export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  kind = "",
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);

/** A link that opens a new tab without a referrer; undefined for other kinds of addresses. */
export function link(address: string): HTMLAnchorElement | undefined {
  if (!/^(https?:\/\/|mailto:)/i.test(address) || !URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (!PROTOCOLS.has(url.protocol)) return undefined;
  const made = html("a");
  made.href = url.href;
  made.title = url.href; // a text may say another address than it leads to
  made.target = "_blank";
  made.rel = "noopener noreferrer nofollow";
  return made;
}

/** A button that copies what a text then is. */
export function copyButton(text: () => string): HTMLButtonElement {
  const button = html("button", "", "Copy");
  button.type = "button";
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(text()).then(
      () => {
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1200);
      },
      () => undefined, // no permission
    );
  });
  return button;
}
