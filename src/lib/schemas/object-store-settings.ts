/** Settings of the bucket in which servers keep files that they share. */
import { z } from "zod";

export const objectStoreSettings = {
  object_store: {
    env: "BERTH_OBJECT_STORE",
    schema: z
      .string()
      .regex(/^s3:\/\//, "must be s3://BUCKET or s3://BUCKET/PREFIX")
      .optional(),
    about:
      "Bucket for code archives and pushed images, as s3://BUCKET/PREFIX; the same on every server. Absent = the database keeps those that servers share.",
  },
  object_store_endpoint: {
    env: "BERTH_OBJECT_STORE_ENDPOINT",
    schema: z.url({ protocol: /^https?$/ }).optional(),
    about: "S3 server of the object store; absent = backup_s3_endpoint, or Amazon's of the region.",
  },
  object_store_region: {
    env: "BERTH_OBJECT_STORE_REGION",
    schema: z.string().min(1).optional(),
    about: "Region of the object store; absent = backup_s3_region.",
  },
  object_store_key_id: {
    env: "BERTH_OBJECT_STORE_KEY_ID",
    schema: z.string().min(1).optional(),
    about: "Access key of the object store; absent = backup_s3_key_id.",
  },
  object_store_secret: {
    env: "BERTH_OBJECT_STORE_SECRET",
    schema: z.string().min(1).optional(),
    about: "Secret of that access key.",
    secret: true,
  },
} as const;
