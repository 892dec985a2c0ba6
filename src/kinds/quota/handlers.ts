import { DRIVE_MB, DRIVE_OBJECTS, isLimited } from "../../lib/schemas/drive-quota.ts";
import { recordedUses } from "../drive/drive-uses.ts";
import { type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { quotaList } from "./operations.ts";
import { quotaWords } from "./quotas.ts";

export const quotaHandlers: readonly Implementation[] = [
  implement(quotaList, async (call, { store, settings }) => {
    const { name: workspace } = workspaceOf(call);
    const counts = await store.resources.countsIn(workspace);
    const ofDrives = await driveQuotas(workspace, { store, settings });
    const quotas = Object.entries(quotaWords()).map(([resource, kind]) => {
      const limit = settings.quotas[kind] ?? null;
      const used = counts[kind] ?? 0;
      return { resource, limit, used, remaining: limit === null ? null : Math.max(0, limit - used) };
    });
    return { workspace, quotas: [...quotas, ...ofDrives].sort((a, b) => (a.resource < b.resource ? -1 : 1)) };
  }),
];

interface QuotaRow {
  resource: string;
  limit: number | null;
  used: number;
  remaining: number | null;
}

/** Only where the operator limits drives: nothing is counted otherwise. */
async function driveQuotas(
  workspace: string,
  { store, settings }: Pick<Platform, "store" | "settings">,
): Promise<QuotaRow[]> {
  const { bytes: bytesMax, objects: objectsMax } = settings.driveQuota;
  if (!isLimited(settings.driveQuota)) return [];
  const { bytes, objects } = await recordedUses(workspace, { store });
  const row = (resource: string, limit: number | null, used: number): QuotaRow[] =>
    limit === null ? [] : [{ resource, limit, used, remaining: Math.max(0, limit - used) }];
  return [
    ...row(DRIVE_MB, bytesMax === null ? null : bytesMax / MB, Math.ceil(bytes / MB)),
    ...row(DRIVE_OBJECTS, objectsMax, objects),
  ];
}

const MB = 2 ** 20;
