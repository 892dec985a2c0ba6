/**
 * AssumeRoleWithWebIdentity, the one action of AWS STS that stock clients call to exchange a token for credentials.
 * The token is a drive access token; the answer are credentials for that drive.
 */
import type { IncomingMessage } from "node:http";
import { S3Error } from "./wire/s3-error.ts";
import { elements, type XmlElement } from "./wire/xml-writer.ts";

export const STS_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/";
const FORM_BYTES_MAX = 64 * 1024;
const ACTION = "AssumeRoleWithWebIdentity";

/** Temporary credentials for one drive. */
export interface TemporaryCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiration: string;
}

export const isTokenExchange = ({ method, url = "", headers }: IncomingMessage): boolean =>
  method === "POST" &&
  /^\/(\?|$)/.test(url) &&
  /^application\/x-www-form-urlencoded\b/.test(headers["content-type"] ?? "");

export async function exchangeToken(
  req: IncomingMessage,
  exchange: (token: string, seconds: number | null) => Promise<TemporaryCredentials | null>,
): Promise<XmlElement> {
  const form = new URLSearchParams(await formOf(req));
  if (form.get("Action") !== ACTION)
    throw new S3Error("NotImplemented", `The only action here is ${ACTION}, not '${form.get("Action") ?? ""}'.`);
  const seconds = form.get("DurationSeconds");
  if (seconds !== null && !/^\d{1,6}$/.test(seconds))
    throw new S3Error("InvalidArgument", "DurationSeconds has to be a number.");
  const made = await exchange(form.get("WebIdentityToken") ?? "", seconds === null ? null : Number(seconds));
  if (!made)
    throw new S3Error(
      "InvalidIdentityToken",
      "The token is not a drive access token of this platform, or it has ended. Ask for one with POST /drives/{name}/access-token.",
    );
  const session = form.get("RoleSessionName") ?? "drive";
  return [
    `${ACTION}Response`,
    [
      [
        `${ACTION}Result`,
        [
          [
            "Credentials",
            elements({
              AccessKeyId: made.accessKeyId,
              SecretAccessKey: made.secretAccessKey,
              SessionToken: made.sessionToken,
              Expiration: made.expiration,
            }),
          ],
          [
            "AssumedRoleUser",
            elements({
              Arn: `arn:aws:sts::000000000000:assumed-role/drive/${session}`,
              AssumedRoleId: `drive:${session}`,
            }),
          ],
        ],
      ],
    ],
  ];
}

async function formOf(req: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of req as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > FORM_BYTES_MAX) throw new S3Error("EntityTooLarge", `The form has more than ${FORM_BYTES_MAX} bytes.`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
