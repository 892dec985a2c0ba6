/**
 * Periodic tasks of the kinds. Among several servers on one database, one server runs each task; a task about a machine
 * has the node in its name, so that every server runs it for its own.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/time/clock.ts";
import { issueCertificates } from "./custom-domain/issue.ts";
import { recheckDomains, sweepCertificates } from "./custom-domain/upkeep.ts";
import { assignWaiting } from "./egress-ip/addresses.ts";
import { neededByImage } from "./image/build.ts";
import { imageTasks } from "./image/sweep.ts";
import type { KindTask } from "./kind-task.ts";
import { nodeTasks } from "./node/tasks.ts";
import { removeOver } from "./over.ts";
import type { Deps } from "./port.ts";
import { neededBySandbox } from "./sandbox/build.ts";
import { sandboxTasks } from "./sandbox/upkeep.ts";
import { snapshotTasks } from "./snapshot/behaviour.ts";
import { volumeTasks } from "./volume/measure.ts";
import { neededByVolume } from "./volume/storage.ts";
import { volumeSnapshotTasks } from "./volume-snapshot/behaviour.ts";
import { neededByTemplate } from "./volume-template/versions.ts";
import { neededByCode, sourcesOfCode, sweepBundles, sweepSharedBlobs } from "./workload/bundle.ts";
import { resumeWorkspaceRemovals } from "./workspace/removal.ts";

/** Interval at which interrupted removals of workspaces are resumed. */
const WORKSPACE_REMOVAL_MS = 5 * SECOND_MS;
/** Interval at which free addresses are given to waiting egress IPs. */
const EGRESS_ADDRESSES_MS = 10 * SECOND_MS;
/** Interval at which the certificates are chosen that are missing or due for renewal. */
const ISSUE_CERTIFICATES_MS = 15 * SECOND_MS;
/** Interval at which domains are chosen whose records are due to be looked up again. */
const RECHECK_DOMAINS_MS = 5 * MINUTE_MS;
/** Interval at which expired records are removed. They are already invisible; removal frees their space. */
const REMOVE_OVER_MS = 5 * MINUTE_MS;

/** The archives and bundles that a resource of each kind needs; the sweep keeps them. */
const NEEDS = {
  agent: neededByCode,
  application: neededByCode,
  function: neededByCode,
  job: neededByCode,
  image: neededByImage,
  sandbox: neededBySandbox,
  volumetemplate: neededByTemplate,
  volume: neededByVolume,
};

/** The archives that servers share; a node that gets a workload builds it again from its archive. */
const SHARED = {
  ...NEEDS,
  agent: sourcesOfCode,
  application: sourcesOfCode,
  function: sourcesOfCode,
  job: sourcesOfCode,
};

/** Executions deleted per transaction; one may have 100,000 rows. */
const EXECUTIONS_AT_ONCE = 10;
/** Threads deleted per transaction; one may have 1,000 messages. */
const THREADS_AT_ONCE = 50;
/** Interval at which code that no revision runs is removed. */
const SWEEP_BUNDLES_MS = 10 * MINUTE_MS;

export const kindTasks = (deps: Deps): KindTask[] => [
  {
    name: "remove-workspaces",
    everyMs: WORKSPACE_REMOVAL_MS,
    run: (signal) => resumeWorkspaceRemovals(deps, signal),
  },
  {
    name: "prune-usage-events",
    everyMs: HOUR_MS,
    run: async (signal) => {
      await deps.store.usage.prune(deps.clock.now() - deps.settings.usageEventsDays * DAY_MS, signal);
    },
  },
  {
    name: "forget-executions",
    everyMs: MINUTE_MS,
    run: async (signal) => {
      while (!signal.aborted && (await deps.store.executions.forgetExpired(EXECUTIONS_AT_ONCE)) > 0);
    },
  },
  {
    name: "forget-threads",
    everyMs: HOUR_MS,
    run: async (signal) => {
      while (!signal.aborted && (await deps.store.threads.forgetExpired(THREADS_AT_ONCE)) > 0);
    },
  },
  { name: "assign-egress-addresses", everyMs: EGRESS_ADDRESSES_MS, run: (signal) => assignWaiting(deps, signal) },
  { name: "recheck-domains", everyMs: RECHECK_DOMAINS_MS, run: (signal) => recheckDomains(deps, signal) },
  { name: "issue-certificates", everyMs: ISSUE_CERTIFICATES_MS, run: (signal) => issueCertificates(deps, signal) },
  { name: "sweep-certificates", everyMs: RECHECK_DOMAINS_MS, run: (signal) => sweepCertificates(deps, signal) },
  ...sandboxTasks(deps),
  ...snapshotTasks(deps),
  ...volumeTasks(deps),
  ...volumeSnapshotTasks(deps),
  ...imageTasks(deps),
  ...nodeTasks(deps),
  {
    name: `sweep-bundles/${deps.settings.nodeId}`,
    everyMs: SWEEP_BUNDLES_MS,
    run: (signal) => sweepBundles(NEEDS, deps, signal),
  },
  { name: "sweep-blobs", everyMs: SWEEP_BUNDLES_MS, run: (signal) => sweepSharedBlobs(SHARED, deps, signal) },
  { name: "remove-over", everyMs: REMOVE_OVER_MS, run: (signal) => removeOver(deps, signal) },
];
