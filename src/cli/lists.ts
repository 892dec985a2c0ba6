/** Tables of kinds whose records do not show what people look for as they are: the columns of each row, by title. */
import { REGISTRY_TYPE } from "../contract/image-reference.ts";
import { bytesText } from "../lib/bytes-text.ts";
import { isObject, memberAt } from "./json-path.ts";

export type Cells = Readonly<Record<string, unknown>>;
/** One record may be several rows. */
export type RowsOf = (record: unknown) => Cells[];

const MB = 2 ** 20;

export const LISTS: Readonly<Record<string, RowsOf>> = {
  /** As `docker images` has them: one row for each tag. */
  image: (image) => {
    const tags = memberAt(image, "spec.tags");
    const rows = Array.isArray(tags) && tags.length > 0 ? (tags as unknown[]) : [{}];
    return rows.map((tag) => ({
      IMAGE: repositoryOf(image, tag),
      TAG: memberAt(tag, "name"),
      SIZE: sizeText(memberAt(tag, "size")),
      STATUS: memberAt(tag, "status") ?? memberAt(image, "metadata.status"),
      AGE: memberAt(tag, "updatedAt") ?? memberAt(image, "metadata.createdAt"),
    }));
  },
  node: (node) => [
    {
      NAME: memberAt(node, "name"),
      STATUS: memberAt(node, "status"),
      DRAINED: memberAt(node, "drained") === true ? "yes" : "no",
      CPUS: memberAt(node, "cpus"),
      MEMORY: sizeText(memberAt(node, "memoryMb"), MB),
      USED: sizeText(memberAt(node, "usedMb"), MB),
      RESOURCES: countsText(memberAt(node, "resources")),
      VERSION: memberAt(node, "version"),
      DRIVER: memberAt(node, "driver"),
    },
  ],
};

/** Operations that answer with a page (`data`, `meta`), whose rows are shown as a table. */
export const PAGES: Readonly<Record<string, RowsOf>> = {
  modelRequests: (request) => [
    {
      TIME: memberAt(request, "time"),
      ID: memberAt(request, "id"),
      KEY: memberAt(request, "key.name") ?? memberAt(request, "key.id"),
      INPUT: memberAt(request, "inputTokens"),
      CACHED: memberAt(request, "cachedInputTokens"),
      OUTPUT: memberAt(request, "outputTokens"),
      // A cost of 0 says nothing where nobody knows a price.
      COST: memberAt(request, "priced") === false ? undefined : memberAt(request, "cost"),
      NOTE: notesOf(request, ["estimated", "cached", "similar"]),
    },
  ],
};

/** The names of the members that are true. */
const notesOf = (record: unknown, members: readonly string[]): string =>
  members.filter((member) => memberAt(record, member) === true).join(", ");

/** `ghcr.io/acme/tool` for an image that workloads name by its reference, otherwise `sandbox/tool`. */
function repositoryOf(image: unknown, tag: unknown): string {
  const type = memberAt(image, "metadata.resourceType");
  const reference = memberAt(tag, "image");
  return type === REGISTRY_TYPE && typeof reference === "string"
    ? reference.replace(/(@|:)[^/]*$/, "")
    : `${type}/${memberAt(image, "metadata.name")}`;
}

function sizeText(count: unknown, unit = 1): string | undefined {
  if (typeof count !== "number") return undefined;
  return bytesText(count * unit);
}

/** "2 sandbox, 1 volume" */
const countsText = (counts: unknown): string =>
  Object.entries(isObject(counts) ? counts : {})
    .filter(([, count]) => Number(count) > 0)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(", ");
