/** Conditional requests: If-Match and the like, for reads and for writes. */
import type { StoredObject } from "../files/drive-objects.ts";
import { S3Error } from "./s3-error.ts";

type Header = (name: string) => string | undefined;

/** "modified": send the object. "not-modified": the client has it. Throws PreconditionFailed. */
export function readOutcome(
  header: Header,
  { etag, modifiedMs }: StoredObject,
  prefix = "",
): "modified" | "not-modified" {
  const seconds = Math.floor(modifiedMs / 1000) * 1000;
  const [match, noneMatch] = [header(`${prefix}if-match`), header(`${prefix}if-none-match`)];
  const [since, unmodified] = [header(`${prefix}if-modified-since`), header(`${prefix}if-unmodified-since`)];
  if (match !== undefined && !names(match, etag)) throw failed("If-Match");
  if (match === undefined && unmodified !== undefined && seconds > Date.parse(unmodified))
    throw failed("If-Unmodified-Since");
  if (noneMatch !== undefined) return names(noneMatch, etag) ? "not-modified" : "modified";
  return since !== undefined && seconds <= Date.parse(since) ? "not-modified" : "modified";
}

export interface WriteCondition {
  /** The key may not exist. */
  isNew: boolean;
  check(there: StoredObject | null): void;
}

export function writeCondition(header: Header): WriteCondition {
  const [match, noneMatch] = [header("if-match"), header("if-none-match")];
  if (noneMatch !== undefined && noneMatch.trim() !== "*")
    throw new S3Error("NotImplemented", "A write takes 'If-None-Match: *' and no other value of it.");
  return {
    isNew: noneMatch !== undefined,
    check(there) {
      if (noneMatch !== undefined && there) throw failed("If-None-Match");
      if (match === undefined) return;
      if (!there) throw new S3Error("NoSuchKey", "The specified key does not exist.");
      if (!names(match, there.etag)) throw failed("If-Match");
    },
  };
}

const names = (list: string, etag: string): boolean =>
  list.split(",").some((one) =>
    ["*", etag].includes(
      one
        .trim()
        .replace(/^W\//, "")
        .replace(/^"(.*)"$/, "$1"),
    ),
  );

const failed = (condition: string): S3Error =>
  new S3Error("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", {
    Condition: condition,
  });
