/** How the conformance suite reaches a driver, and what its parts share. */
import type { Driver, OnStop } from "../driver.ts";
import type { Observed, WorkloadSpec } from "../workload.ts";

export interface Harness {
  driver: Driver;
  image: string;
  /** Files inside a workload, by absolute path as seen inside. */
  read(workload: Observed, path: string): Promise<string>;
  write(workload: Observed, path: string, text: string): Promise<void>;
  /** Files that each command has to itself. */
  ownFiles: readonly string[];
  /** The server ends and a new one starts on the same machine; workloads go on unless told. */
  restart(workloads?: OnStop): Promise<Driver>;
  /** Another node of the same machine, with a data folder of its own. */
  neighbour(): Promise<Harness>;
  dispose(): Promise<void>;
}

/** A specification, with a uid of its own unless told; what is made from it is destroyed at the end of the suite. */
export type Make = (more?: Partial<WorkloadSpec>) => WorkloadSpec;
/** The harness, which is opened only once the tests run. */
export type Get = () => Harness;
/** Tests of one part of the port. */
export type Part = (get: Get, spec: Make) => void;

let counter = 0;
export const newUid = (): string => `conform-${process.pid}-${counter++}`;

/** Equal for two observations of one workload, different for two workloads, also for those of one uid. */
export const identityOf = ({ uid, createdAt, endpoint }: Observed): string =>
  JSON.stringify([uid, createdAt, endpoint]);
