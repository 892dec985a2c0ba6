/** Tags of an object: at most ten pairs, in a header or in a document. */
import { S3Error } from "./s3-error.ts";
import { childrenOf, readXml, textOf } from "./xml-reader.ts";
import type { XmlElement } from "./xml-writer.ts";

const TAGS_MAX = 10;
const KEY_MAX = 128;
const VALUE_MAX = 256;

export type Tags = Record<string, string>;

export const tagsOfHeader = (header: string | undefined): Tags =>
  checked([...new URLSearchParams(header ?? "")].map(([key, value]) => [key, value]));

export function tagsOfDocument(document: string): Tags {
  const root = readXml(document);
  const [set] = childrenOf(root, "TagSet");
  if (root.name !== "Tagging" || !set)
    throw new S3Error("MalformedXML", "The document has to be a Tagging with a TagSet.");
  return checked(childrenOf(set, "Tag").map((tag) => [textOf(tag, "Key") ?? "", textOf(tag, "Value") ?? ""]));
}

export const tagsAsXml = (tags: Tags): XmlElement => [
  "TagSet",
  Object.entries(tags).map(
    ([key, value]) =>
      [
        "Tag",
        [
          ["Key", key],
          ["Value", value],
        ],
      ] as const,
  ),
];

function checked(pairs: [string, string][]): Tags {
  if (pairs.length > TAGS_MAX) throw new S3Error("InvalidTag", `Object tags cannot be greater than ${TAGS_MAX}`);
  const tags = new Map(pairs);
  if (tags.size < pairs.length) throw new S3Error("InvalidTag", "Cannot provide multiple Tags with the same key");
  for (const [key, value] of pairs)
    if (key === "" || key.length > KEY_MAX || value.length > VALUE_MAX)
      throw new S3Error(
        "InvalidTag",
        `A tag has a key of 1 to ${KEY_MAX} characters and a value of at most ${VALUE_MAX}.`,
      );
  return Object.fromEntries(tags);
}
