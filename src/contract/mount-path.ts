/** Where a volume, a drive or a scratch disk may be mounted in a workload. */
import { z } from "zod";

const LENGTH_MAX = 512;
const PART_BYTES_MAX = 255; // longest file name in all supported file systems
/** Kernel file systems and the platform's folder: a mount at, below or above one of them would hide it. */
const RESERVED = ["/proc", "/dev", "/sys", "/run/berth"];

/** Normalizes slashes: one between parts, none at the end. */
export const plainPath = (path: string): string => `/${path.split("/").filter(Boolean).join("/")}`;

/** Why nothing can be mounted at the path; null when it is allowed. */
export function mountPathProblem(path: string): string | null {
  if (!/^\/[^\0]*$/.test(path)) return "must be an absolute path";
  const plain = plainPath(path);
  if (plain.split("/").some((part) => part === "." || part === "..")) return "must have no . or .. in it";
  if (plain.split("/").some((part) => new TextEncoder().encode(part).length > PART_BYTES_MAX))
    return "must have no part of more than 255 bytes";
  const reserved = RESERVED.find((each) => isWithin(plain, each) || isWithin(each, plain));
  return reserved ? `cannot be ${plain}: nothing can be mounted over ${reserved}` : null;
}

const isWithin = (path: string, folder: string): boolean =>
  folder === "/" || path === folder || path.startsWith(`${folder}/`);

export const mountPath = z
  .string()
  .max(LENGTH_MAX)
  .superRefine((path, context) => {
    const problem = mountPathProblem(path);
    if (problem) context.addIssue({ code: "custom", message: problem });
  });

/** Refuses two mounts at the same path: the later one would hide the earlier. */
export function refuseSamePath(mounts: readonly { mountPath: string }[], context: z.RefinementCtx): void {
  const seen = new Map<string, number>();
  for (const [index, { mountPath: path }] of mounts.entries()) {
    const earlier = seen.get(plainPath(path));
    if (earlier === undefined) seen.set(plainPath(path), index);
    else
      context.addIssue({
        code: "custom",
        path: [index, "mountPath"],
        message: `is the path of [${earlier}] already`,
      });
  }
}
