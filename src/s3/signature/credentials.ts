/** Finds the signature in a request: in the Authorization header, or in the query of a presigned address. */
import { S3Error } from "../wire/s3-error.ts";
import { ALGORITHM, type Scope } from "./canonical.ts";

export interface Presented {
  accessKeyId: string;
  scope: Scope;
  signedHeaders: string[];
  signature: string;
  /** Time of the signature as sent: 20260101T000000Z. */
  time: string;
  token: string | null;
  /** Seconds that a presigned address is valid; null for a signature in the header. */
  validSeconds: number | null;
}

type One = (name: string) => string | undefined;

/** A week: the longest validity of a presigned address. */
const PRESIGNED_SECONDS_MAX = 604_800;

/** Null for a request without a signature. */
export function presentedIn(header: One, query: One): Presented | null {
  const authorization = header("authorization");
  if (authorization !== undefined && query("X-Amz-Signature") !== undefined)
    throw new S3Error("InvalidArgument", "Sign a request in its header or in its query, not in both.");
  if (authorization !== undefined) return fromHeader(authorization, header);
  if (query("AWSAccessKeyId") !== undefined)
    throw new S3Error(
      "InvalidRequest",
      `A presigned address has to use ${ALGORITHM} (signature version 4). boto3 uses it with ` +
        "AWS_DEFAULT_REGION=local, or with Config(signature_version='s3v4').",
    );
  return query("X-Amz-Signature") === undefined && query("X-Amz-Algorithm") === undefined ? null : fromQuery(query);
}

function fromHeader(authorization: string, header: One): Presented {
  const [algorithm = "", rest = ""] = authorization.split(/\s+(.*)/s);
  if (algorithm !== ALGORITHM)
    throw new S3Error("InvalidRequest", `Authorization has to use ${ALGORITHM} (signature version 4).`);
  const members = new Map(rest.split(",").map((part) => part.trim().split(/=(.*)/s, 2) as [string, string]));
  const malformed = (why: string): S3Error => new S3Error("AuthorizationHeaderMalformed", why);
  const time = header("x-amz-date") ?? isoTime(header("date"));
  if (time === undefined) throw new S3Error("AccessDenied", "A signed request needs the header x-amz-date.");
  return {
    ...checked(members.get("Credential"), members.get("SignedHeaders"), members.get("Signature"), time, malformed),
    token: header("x-amz-security-token") ?? null,
    validSeconds: null,
  };
}

function fromQuery(query: One): Presented {
  const malformed = (why: string): S3Error => new S3Error("AuthorizationQueryParametersError", why);
  if (query("X-Amz-Algorithm") !== ALGORITHM) throw malformed(`X-Amz-Algorithm has to be ${ALGORITHM}.`);
  const expires = query("X-Amz-Expires") ?? "";
  const validSeconds = Number(expires);
  if (!/^\d{1,6}$/.test(expires) || validSeconds < 1 || validSeconds > PRESIGNED_SECONDS_MAX)
    throw malformed(`X-Amz-Expires has to be a number of seconds from 1 to ${PRESIGNED_SECONDS_MAX}.`);
  const names = ["X-Amz-Credential", "X-Amz-SignedHeaders", "X-Amz-Signature"].map(query);
  return {
    ...checked(names[0], names[1], names[2], query("X-Amz-Date") ?? "", malformed),
    token: query("X-Amz-Security-Token") ?? null,
    validSeconds,
  };
}

function checked(
  credential: string | undefined,
  signedHeaders: string | undefined,
  signature: string | undefined,
  time: string,
  malformed: (why: string) => S3Error,
): Omit<Presented, "token" | "validSeconds"> {
  const parts = credential?.split("/") ?? [];
  const [terminator, service, region, date] = parts.slice(-4).reverse();
  const accessKeyId = parts.slice(0, -4).join("/");
  if (!accessKeyId || !date || !region || service === undefined || terminator !== "aws4_request")
    throw malformed("The credential has to be KEY/DATE/REGION/s3/aws4_request.");
  if (service !== "s3" && service !== "sts") throw malformed(`The credential is for service '${service}', not for s3.`);
  if (!/^\d{8}T\d{6}Z$/.test(time)) throw malformed("The time of the signature has to be like 20260101T000000Z.");
  if (!time.startsWith(date)) throw malformed("The date of the credential is not that of the signature.");
  if (!signature || !/^[0-9a-f]{64}$/.test(signature))
    throw malformed("The signature has to be 64 hexadecimal digits.");
  const names = signedHeaders?.split(";") ?? [];
  if (!names.includes("host")) throw malformed("The header host has to be signed.");
  return { accessKeyId, scope: { date, region, service }, signedHeaders: names, signature, time };
}

/** A Date header in the form of x-amz-date. */
function isoTime(date: string | undefined): string | undefined {
  const ms = Date.parse(date ?? "");
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, "");
}

export const timeMs = (time: string): number =>
  Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
