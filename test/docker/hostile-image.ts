/** Layers that the engine's own reader of archives takes for something else than they seem. */
import { type Entry, tar } from "../image-archive.ts";

/** An extended header for the entry after it. */
const pax = (values: Record<string, string | number>): Entry => ({
  path: "pax",
  type: "x",
  content: Object.entries(values)
    .map(([key, value]) => record(`${key}=${value}\n`))
    .join(""),
});

/** `<length> <text>`, whose length counts itself. */
function record(text: string): string {
  let length = text.length + 2;
  while (`${length} ${text}`.length !== length) length += 1;
  return `${length} ${text}`;
}

/** A file of one stored byte that unpacks to `bytes`. */
const sparse = (bytes: number): Entry[] => [
  pax({ "GNU.sparse.major": 1, "GNU.sparse.minor": 0, "GNU.sparse.name": "large", "GNU.sparse.realsize": bytes }),
  { path: "GNUSparseFile.0/large", content: `${"1\n0\n1\n".padEnd(512, "\0")}x` },
];

const LARGE = 8 * 1024 * 1024;
const hidden = tar(sparse(LARGE)).subarray(0, -1024);

/** The file with holes, open and behind entries that readers measure differently. */
export const sparseLayers: Record<string, Buffer> = {
  "with holes": tar(sparse(LARGE)),
  "with holes in the content of a link": tar([{ path: "link", type: "2", link: "x", content: hidden }]),
  "with holes in the content of a folder": tar([{ path: "folder/", type: "\0", content: hidden }]),
};
