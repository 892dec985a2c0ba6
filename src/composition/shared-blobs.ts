/** Where the servers of one database share files by their hash: the operator's bucket, or the database. */
import { type Config, ConfigError, originOf } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Log } from "../kinds/port.ts";
import type { SharedBlobs } from "../node/blobs/blob-store.ts";
import type { BucketBlobs } from "../s3/client/bucket-blobs.ts";
import { parseS3Location, type S3Location } from "../s3/client/s3-location.ts";
import type { Store } from "../store/store.ts";

/** Undefined where no other server needs the files and there is no bucket. */
export async function openSharedBlobs({
  config,
  store,
  log,
}: {
  config: Config;
  store: Store;
  log: Pick<Log, "warn">;
}): Promise<SharedBlobs | undefined> {
  const { object_store: text } = config;
  if (text === undefined) return store.database.dialect === "postgres" ? store.blobs : undefined;
  const location = parseS3Location(text);
  if (location === null) throw new ConfigError(`${originOf("object_store")}: write s3://BUCKET or s3://BUCKET/PREFIX`);
  const bucket = await openBucket(config, location);
  /** The reason names the operator's servers, so it goes to the log and not to the tenant who sent the request. */
  const told = <T>(work: Promise<T>): Promise<T> =>
    work.catch((cause: unknown) => {
      log.warn({ err: cause }, "the object store cannot be used");
      throw new PlatformError("unavailable", "The object store of this installation cannot be used now.", { cause });
    });
  return {
    write: (digest, content) => told(bucket.write(digest, content)),
    // Files from before there was a bucket.
    read: async (digest) => (await told(bucket.read(digest))) ?? store.blobs.read(digest),
    list: () => told(bucket.list()),
    remove: (digest, writtenMs) => told(bucket.remove(digest, writtenMs)),
  };
}

async function openBucket(config: Config, { bucket, prefix }: S3Location): Promise<BucketBlobs> {
  const accessKeyId = config.object_store_key_id ?? config.backup_s3_key_id;
  const secretAccessKey = config.object_store_secret ?? config.backup_s3_secret;
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new ConfigError(
      `${originOf("object_store")}: set BERTH_OBJECT_STORE_KEY_ID and BERTH_OBJECT_STORE_SECRET, and BERTH_OBJECT_STORE_ENDPOINT for a server other than Amazon's`,
    );
  // lazy: few servers have a bucket
  const [{ openS3Client }, { CHUNK_BYTES, openBucketBlobs }] = await Promise.all([
    import("../s3/client/s3-client.ts"),
    import("../s3/client/bucket-blobs.ts"),
  ]);
  const region = config.object_store_region ?? config.backup_s3_region;
  const client = openS3Client({
    ...{ bucket, region, accessKeyId, secretAccessKey, answerBytesMax: 2 * CHUNK_BYTES },
    // A token belongs to the key that it was given with.
    sessionToken: config.object_store_key_id === undefined ? config.backup_s3_token : undefined,
    endpoint: config.object_store_endpoint ?? config.backup_s3_endpoint ?? `https://s3.${region}.amazonaws.com`,
  });
  return openBucketBlobs(client, prefix === "" ? "blobs/" : `${prefix}/blobs/`);
}
