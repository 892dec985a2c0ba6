/** A repository below a prefix of an S3 bucket. */
import { UsageError } from "../../../lib/usage-error.ts";
import { openS3Client } from "../../../s3/client/s3-client.ts";
import { OBJECT_BYTES_MAX, type Place } from "./place.ts";

export interface S3Access {
  endpoint: string | undefined;
  region: string;
  accessKeyId: string | undefined;
  secretAccessKey: string | undefined;
  sessionToken: string | undefined;
}

interface Where {
  shown: string;
  bucket: string;
  prefix: string;
}

export function s3Place({ shown, bucket, prefix }: Where, access: S3Access): Place {
  const { region, accessKeyId, secretAccessKey, sessionToken } = access;
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new UsageError(
      `${shown} needs credentials.`,
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL_S3 for a server other than Amazon's",
    );
  const client = openS3Client({
    ...{ bucket, region, accessKeyId, secretAccessKey, sessionToken, answerBytesMax: OBJECT_BYTES_MAX },
    endpoint: access.endpoint ?? `https://s3.${region}.amazonaws.com`,
  });
  const before = prefix === "" ? "" : `${prefix}/`;
  return {
    shown,
    put: async (key, bytes) => void (await client.put(before + key, bytes)),
    putNew: (key, bytes) => client.put(before + key, bytes, { onlyNew: true }),
    get: (key) => client.get(before + key),
    async *list(under) {
      for await (const key of client.list(before + under)) yield key.slice(before.length);
    },
    remove: (key) => client.remove(before + key),
  };
}
