/** A request as S3 reads it: bucket and key from path or host, decoded query, every header. */
import type { IncomingMessage } from "node:http";
import { S3Error } from "./s3-error.ts";

export interface S3Request {
  method: string;
  /** Decoded path, as it was signed. */
  path: string;
  /** Empty for requests about no bucket. */
  bucket: string;
  /** Empty for requests about the bucket. */
  key: string;
  pairs: readonly (readonly [string, string])[];
  headers: ReadonlyMap<string, readonly string[]>;
  query(name: string): string | undefined;
  header(name: string): string | undefined;
}

/** `hosts`: names of the endpoint; a host below one of them names a bucket. */
export function readRequest(
  { method = "", url = "", rawHeaders }: Pick<IncomingMessage, "method" | "url" | "rawHeaders">,
  hosts: readonly string[],
): S3Request {
  const headers = headersOf(rawHeaders);
  const [rawPath = "", rawQuery = ""] = url.split(/\?(.*)/s, 2);
  if (!rawPath.startsWith("/")) throw invalid();
  const path = decoded(rawPath);
  const pairs = rawQuery === "" ? [] : rawQuery.split("&").filter(Boolean).map(pairOf);
  const header = (name: string): string | undefined => headers.get(name)?.join(",");
  const bucketOfHost = bucketIn(header("host") ?? "", hosts);
  const [bucketOfPath = "", keyOfPath = ""] = path.slice(1).split(/\/(.*)/s, 2);
  return {
    ...{ method, path, pairs, headers, header },
    ...(bucketOfHost === null
      ? { bucket: bucketOfPath, key: keyOfPath }
      : { bucket: bucketOfHost, key: path.slice(1) }),
    query: (name) => pairs.find(([each]) => each === name)?.[1],
  };
}

function bucketIn(hostField: string, hosts: readonly string[]): string | null {
  const host = hostField.replace(/:\d+$/, "").toLowerCase();
  const base = hosts.find((one) => host.endsWith(`.${one}`));
  return base === undefined ? null : host.slice(0, -base.length - 1);
}

function headersOf(raw: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (let at = 0; at < raw.length; at += 2) {
    const field = (raw[at] ?? "").toLowerCase();
    // HTTP/2 names the host in a field of its own, beside which Host says the same again.
    if (field === "host" && raw.includes(":authority")) continue;
    const name = field === ":authority" ? "host" : field;
    headers.set(name, [...(headers.get(name) ?? []), raw[at + 1] ?? ""]);
  }
  return headers;
}

function pairOf(text: string): [string, string] {
  const [name = "", value = ""] = text.split(/=(.*)/s, 2);
  return [decoded(name.replaceAll("+", " ")), decoded(value.replaceAll("+", " "))];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid();
  }
}

const invalid = (): S3Error => new S3Error("InvalidURI", "Couldn't parse the specified URI.");
