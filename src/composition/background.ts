/** The fifth phase: everything that happens without a request. */
import { pruneAudit } from "../auth/audit-retention.ts";
import { forgetEnded } from "../auth/rights/forget-ended.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { brandWords } from "../http/header-rules.ts";
import type { DriveUses } from "../kinds/drive/drive-uses.ts";
import { executionLine } from "../kinds/job/triggered.ts";
import type { KindTask } from "../kinds/kind-task.ts";
import type { Deps } from "../kinds/port.ts";
import { kindTasks } from "../kinds/tasks.ts";
import { createOutboundPost } from "../lib/network/outbound-post.ts";
import { HOUR_MS } from "../lib/time/clock.ts";
import { startTasks } from "../reconcile/tasks.ts";
import { startTriggers } from "../reconcile/triggers.ts";
import { backupTasks, clearKilledBackups } from "./backups.ts";
import type { StartedNode } from "./node.ts";
import { startReconciling } from "./reconciling.ts";
import { s3UploadTasks } from "./s3-uploads.ts";
import type { Start } from "./start.ts";

export async function startBackground(
  { config, clock, log, version, holder, stack }: Start,
  { driver }: StartedNode,
  deps: Deps,
  uses: DriveUses,
  { replay, compose }: Gateway,
): Promise<void> {
  const { store, meter } = deps;
  const tasks: KindTask[] = [
    { name: "forget-idempotency", everyMs: HOUR_MS, run: () => store.idempotency.forgetOld() },
    { name: "forget-records", everyMs: HOUR_MS, run: () => store.records.forgetExpired() },
    { name: "forget-oauth", everyMs: HOUR_MS, run: () => store.oauth.forgetExpired() },
    { name: "forget-ended-rights", everyMs: HOUR_MS, run: () => forgetEnded({ store, clock }) },
    { name: "forget-sign-in-tries", everyMs: HOUR_MS, run: () => store.signInTries.forgetOld() },
    ...(config.audit_days === 0
      ? []
      : [{ name: "prune-audit", everyMs: HOUR_MS, run: pruneAudit(store, clock, config.audit_days) }]),
    ...backupTasks({ config, store, clock, log, nodeId: deps.settings.nodeId }),
    ...s3UploadTasks(deps),
    ...uses.tasks(),
    ...kindTasks(deps),
  ];
  await clearKilledBackups({ config, log });
  stack.add(startTasks({ store, log, holder, tasks }));
  stack.add(startReconciling({ deps, driver, holder }));
  stack.add(
    await startTriggers({
      ...{ store, clock, log, meter, version, replay, compose },
      place: deps.settings.nodeId,
      brandWords: brandWords(config.brand),
      post: createOutboundPost({ privateAddresses: config.private_callbacks }),
      executions: executionLine(deps),
    }),
  );
}
