/** Creates elements of MathML. */
const MATHML = "http://www.w3.org/1998/Math/MathML";

/** Create a MathML element with children. */
export function node(tag: string, ...children: readonly (Node | string)[]): Element {
  const element = document.createElementNS(MATHML, tag);
  element.append(...children);
  return element;
}

/** Set attributes of an element, and return the element. */
export function set(element: Element, values: Readonly<Record<string, string>>): Element {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
  return element;
}

/** Group elements into a row, unless there is only one. */
export function row(children: readonly Element[]): Element {
  return children.length === 1 && children[0] ? children[0] : node("mrow", ...children);
}

/** Create a bracket, which is as high as its content if it is stretchy. */
export function fence(text: string, stretchy: boolean): Element {
  return set(node("mo", text), {
    stretchy: String(stretchy),
    fence: "true",
    lspace: "0",
    rspace: "0",
  });
}
