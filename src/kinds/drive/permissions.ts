import type { Drive } from "./kind.ts";

/** Who may use a drive, and how. */
export type DriveRule = NonNullable<Drive["spec"]["permissions"]>[number];

export interface DriveAccess {
  mode: "read" | "read-write";
  /** The folder of the drive that the rule opens; "/" opens the whole drive. */
  path: string;
}

/** The first rule whose labels all match decides. No rules: open to the whole workspace; no match: closed. */
export function driveAccess(
  rules: readonly DriveRule[] | undefined,
  labels: Readonly<Record<string, string>>,
): DriveAccess | null {
  if (!rules || rules.length === 0) return { mode: "read-write", path: "/" };
  const rule = rules.find((one) => Object.entries(one.labels ?? {}).every(([key, value]) => labels[key] === value));
  return rule ? { mode: rule.mode ?? "read-write", path: rule.path ?? "/" } : null;
}

/** The labels that rules match: the workload's own, and its workspace, kind and name. */
export const workloadLabels = (
  workload: {
    workspace: string;
    kind: string;
    name: string;
    metadata: { labels?: Record<string, string> | undefined };
  },
  brand: string,
): Record<string, string> => ({
  ...workload.metadata.labels,
  ...Object.fromEntries(
    [...new Set([brand, "service"])].flatMap((word) => [
      [`${word}-workspace`, workload.workspace],
      [`${word}-type`, workload.kind],
      [`${word}-name`, workload.name],
    ]),
  ),
});

/** Normalises a path: one leading slash, no doubled and no trailing slashes. */
export function normalized(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return `/${parts.join("/")}`;
}

export const isWithin = (path: string, root: string): boolean => {
  const base = normalized(root);
  return base === "/" || path === base || path.startsWith(`${base}/`);
};

/** Whether access `has` includes access `wants`. */
export const covers = (has: DriveAccess | null, wants: DriveAccess): boolean =>
  has !== null && (has.mode === "read-write" || wants.mode === "read") && isWithin(wants.path, has.path);
