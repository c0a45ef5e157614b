// MathML from the server, rebuilt element by element: only these elements, only these attributes.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS = new Set(
  ("math mrow mi mn mo mtext mfrac msup msub msubsup msqrt mroot mtable mtr mtd mover munder " +
    "munderover mfenced mspace mstyle").split(" "));
const ATTRIBUTES = new Set(["display", "stretchy", "form", "columnalign", "mathvariant", "fence"]);

/** Return a math element for the markup, or its text where it is not understood. */
export function math(markup) {
  const parsed = new DOMParser().parseFromString(markup, "text/xml");
  return rebuilt(parsed.documentElement);
}

function rebuilt(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE) return document.createTextNode("");
  const known = ELEMENTS.has(node.localName);
  const element = document.createElementNS(SPACE, known ? node.localName : "mtext");
  for (const { name, value } of node.attributes) {
    if (known && ATTRIBUTES.has(name)) element.setAttribute(name, value);
  }
  element.append(...[...node.childNodes].map(rebuilt));
  return element;
}
