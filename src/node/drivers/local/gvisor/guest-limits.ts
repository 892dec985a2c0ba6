/**
 * What the control groups of a workload in gVisor have to hold. The sentry has threads of its own, and a thread and part
 * of a process on the machine for each thread inside. A sentry that cannot start a thread ends, and with it the workload.
 */
import { type Grade, type Limits, PIDS_DEFAULT } from "../../../workload.ts";

const SENTRY_THREADS = 256;
const PER_THREAD = 2;

const guestLimits = (limits: Limits): Limits => ({
  ...limits,
  pids: PER_THREAD * (limits.pids ?? PIDS_DEFAULT) + SENTRY_THREADS,
});

/** The limits of the control groups of a workload that has `limits`. */
export const groupLimits = ({ grade }: { grade: Grade }, limits: Limits): Limits =>
  grade === "vm-like" ? guestLimits(limits) : limits;
