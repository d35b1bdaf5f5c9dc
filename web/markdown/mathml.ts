/** Elements of MathML. */
const MATHML = "http://www.w3.org/1998/Math/MathML";

/** An element. */
export function made(tag: string, ...children: readonly (Node | string)[]): Element {
  const element = document.createElementNS(MATHML, tag);
  element.append(...children);
  return element;
}

/** An element with attributes more. */
export function set(element: Element, values: Readonly<Record<string, string>>): Element {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
  return element;
}

/** Elements in a row, as one. */
export function row(children: readonly Element[]): Element {
  return children.length === 1 && children[0] ? children[0] : made("mrow", ...children);
}

/** A bracket: as high as what it encloses, or as it is. */
export function fence(text: string, stretchy: boolean): Element {
  return set(made("mo", text), {
    stretchy: String(stretchy),
    fence: "true",
    lspace: "0",
    rspace: "0",
  });
}
