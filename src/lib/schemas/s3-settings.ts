/** Settings of the S3 door of drives. */
import { z } from "zod";

export const s3Settings = {
  s3_port: {
    env: "BERTH_S3_PORT",
    schema: z.coerce.number().int().min(0).max(65535).optional(),
    about: "Port on which every drive is an S3 bucket; 0 = any free one, absent = drives have no S3 door.",
  },
  s3_url: {
    env: "BERTH_S3_URL",
    schema: z
      .url({ protocol: /^https?$/ })
      .refine((text) => URL.parse(text)?.pathname === "/", "must be an origin: S3 clients sign a path wrongly")
      .optional(),
    about: "Address under which clients reach the S3 door; absent = the server's host with s3_port.",
  },
} as const;
