/** Settings of the S3 door of drives. */
import { z } from "zod";

export const s3Settings = {
  s3_port: {
    env: "BERTH_S3_PORT",
    schema: z.coerce.number().int().min(0).max(65535).optional(),
    about:
      "Port on which every drive is an S3 bucket; 0 = any free one, absent = none. With a domain, the server's own port answers at s3.DOMAIN too.",
  },
  s3_url: {
    env: "BERTH_S3_URL",
    schema: z
      .url({ protocol: /^https?$/ })
      .refine((text) => URL.parse(text)?.pathname === "/", "must be an origin: S3 clients sign a path wrongly")
      .optional(),
    about:
      "Address under which clients reach the S3 door; absent = the server's host with s3_port, or s3.DOMAIN without one.",
  },
} as const;

/** Whether this server has an S3 door: on a port of its own, or on the server's port at a host name below the domain. */
export const hasS3 = ({ s3_port, domain }: { s3_port?: number | undefined; domain?: string | undefined }): boolean =>
  s3_port !== undefined || domain !== undefined;
