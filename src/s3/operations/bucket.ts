/** Questions about a bucket. A bucket is a drive: the platform's API makes, changes and removes it. */
import type { Answer, S3Call } from "../call.ts";
import { type S3Code, S3Error } from "../wire/s3-error.ts";

export const headBucket = async ({ region }: S3Call): Promise<Answer> => ({
  headers: { "x-amz-bucket-region": region },
});

export const getBucketLocation = async ({ region }: S3Call): Promise<Answer> => ({
  xml: ["LocationConstraint", region],
});

/** No status: versions were never kept. */
export const getBucketVersioning = async (): Promise<Answer> => ({ xml: ["VersioningConfiguration", []] });

/** Tools that make sure of a bucket before they use it go on after this answer. */
export async function createBucket(): Promise<Answer> {
  throw new S3Error("BucketAlreadyOwnedByYou", "The bucket is a drive, and is there already.");
}

const ABSENT: Readonly<Record<string, S3Code>> = {
  cors: "NoSuchCORSConfiguration",
  encryption: "ServerSideEncryptionConfigurationNotFoundError",
  lifecycle: "NoSuchLifecycleConfiguration",
  "object-lock": "ObjectLockConfigurationNotFoundError",
  policy: "NoSuchBucketPolicy",
  tagging: "NoSuchTagSet",
};

/** Configurations that a drive never has, each with the code by which clients know that. */
export const absentConfigurations = Object.entries(ABSENT).map(([name, code]) => ({
  method: "GET",
  on: "bucket" as const,
  query: [name],
  run: async (): Promise<Answer> => {
    throw new S3Error(code, `A drive has no ${name} configuration.`);
  },
}));
