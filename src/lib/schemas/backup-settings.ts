/** Settings of backups with files. Credentials of S3 have the names that other S3 clients read. */
import { z } from "zod";
import { cronTimes } from "../time/cron.ts";

const isCron = (text: string): boolean => {
  try {
    cronTimes(text, "UTC");
    return true;
  } catch {
    return false;
  }
};

export const backupSettings = {
  backup_target: {
    env: "BERTH_BACKUP_TARGET",
    schema: z.string().min(1).optional(),
    about: "Where `berth backup --files` puts backups: a folder or s3://BUCKET/PREFIX; the same on every server.",
  },
  backup_schedule: {
    env: "BERTH_BACKUP_SCHEDULE",
    schema: z.string().refine(isCron, "must be five cron fields, such as 0 3 * * *").optional(),
    about: "When a backup with files is made, as five cron fields in UTC; absent = never by itself.",
  },
  backup_keep: {
    env: "BERTH_BACKUP_KEEP",
    schema: z.coerce.number().int().min(1).max(10_000).default(7),
    about: "How many backups a scheduled one keeps, itself included; older ones are removed.",
  },
  backup_s3_endpoint: {
    env: "AWS_ENDPOINT_URL_S3",
    schema: z.url({ protocol: /^https?$/ }).optional(),
    about: "S3 server for backups; absent = Amazon's of the region.",
  },
  backup_s3_region: {
    env: "AWS_REGION",
    schema: z.string().min(1).default("us-east-1"),
    about: "Region of the bucket for backups.",
  },
  backup_s3_key_id: {
    env: "AWS_ACCESS_KEY_ID",
    schema: z.string().min(1).optional(),
    about: "Access key of the bucket for backups.",
  },
  backup_s3_secret: {
    env: "AWS_SECRET_ACCESS_KEY",
    schema: z.string().min(1).optional(),
    about: "Secret of that access key.",
    secret: true,
  },
  backup_s3_token: {
    env: "AWS_SESSION_TOKEN",
    schema: z.string().min(1).optional(),
    about: "Session token, for temporary credentials.",
    secret: true,
  },
} as const;
