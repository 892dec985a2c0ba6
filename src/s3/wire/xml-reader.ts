/**
 * Reads the small XML documents that S3 clients send: elements and text. Attributes are skipped; document types,
 * processing instructions and entities other than the five of XML are refused, so that no document grows on reading.
 */
import { S3Error } from "./s3-error.ts";

export interface XmlNode {
  name: string;
  text: string;
  children: XmlNode[];
}

const DEPTH_MAX = 16;
/** The list of 10,000 parts has at most eight elements for each. An element takes far more memory than its text. */
const ELEMENTS_MAX = 100_000;
const TOKEN =
  /<\?xml[^>]*\?>|<!--[\s\S]*?-->|<(\/?)([A-Za-z_][\w:.-]*)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/gy;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

export function readXml(document: string): XmlNode {
  const top: XmlNode = { name: "", text: "", children: [] };
  const open = [top];
  let elements = 0;
  TOKEN.lastIndex = 0;
  for (let at = document.startsWith("\ufeff") ? 1 : 0; at < document.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(document);
    if (!found) throw malformed();
    const [, closing, name, , selfClosing, text] = found;
    const current = open.at(-1) ?? top;
    if (text !== undefined) current.text += decoded(text);
    else if (name !== undefined && closing) {
      if (current.name !== local(name) || open.length === 1) throw malformed();
      open.pop();
    } else if (name !== undefined) {
      elements += 1;
      if (elements > ELEMENTS_MAX) throw malformed();
      const node: XmlNode = { name: local(name), text: "", children: [] };
      current.children.push(node);
      if (!selfClosing && open.push(node) > DEPTH_MAX) throw malformed();
    }
  }
  const [root, second] = top.children;
  if (open.length !== 1 || !root || second || top.text.trim() !== "") throw malformed();
  return root;
}

export const childrenOf = ({ children }: XmlNode, name: string): XmlNode[] =>
  children.filter((child) => child.name === name);

export const textOf = (node: XmlNode, name: string): string | undefined =>
  node.children.find((child) => child.name === name)?.text;

/** The name without the prefix of a namespace. */
const local = (name: string): string => name.slice(name.indexOf(":") + 1);

const decoded = (text: string): string =>
  text.replace(/&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(\w+));|&/g, (_all, hex, decimal, named) => {
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    const found = named === undefined ? undefined : ENTITIES[named];
    if (found !== undefined) return found;
    if (!(code > 0 && code <= 0x10ffff)) throw malformed();
    return String.fromCodePoint(code);
  });

const malformed = (): S3Error => new S3Error("MalformedXML", "The XML of the request cannot be read.");
