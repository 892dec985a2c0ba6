/** Writes XML answers. An element is its name and its content: text, child elements, or nothing. */
export type XmlContent = string | number | boolean | readonly XmlElement[];
export type XmlElement = readonly [name: string, content: XmlContent];

const HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n';
export const S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/";

export const xmlDocument = ([name, content]: XmlElement, namespace?: string): string =>
  `${HEAD}<${name}${namespace === undefined ? "" : ` xmlns="${namespace}"`}>${written(content)}</${name}>`;

/** Leaves out elements whose content is undefined. */
export const elements = (members: Readonly<Record<string, XmlContent | undefined>>): XmlElement[] =>
  Object.entries(members).flatMap(([name, content]) => (content === undefined ? [] : [[name, content] as const]));

const written = (content: XmlContent): string =>
  Array.isArray(content)
    ? content.map(([name, inner]: XmlElement) => `<${name}>${written(inner)}</${name}>`).join("")
    : escaped(String(content));

const NAMED: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Control characters become references: a parser would drop or change them, and a key may have them. */
const escaped = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  text.replace(/[&<>"\u0000-\u001f\u007f\ufffe\uffff]/g, (found) => NAMED[found] ?? `&#${found.charCodeAt(0)};`);
