/** The third phase: the machine of this server, opened in the background, and what is metered on it. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { onStopOf } from "../config.ts";
import { startEgressDeployment } from "../kinds/egress-ip/deployment.ts";
import { PLACED_KINDS } from "../kinds/node/adopt.ts";
import { type NodeRegistry, startNodeRegistry } from "../kinds/node/registry.ts";
import type { Node } from "../kinds/port.ts";
import { createNeighbours } from "../kinds/vpc/neighbours.ts";
import { createIdentityTokens } from "../kinds/workload/identity-token.ts";
import { leastIsolation } from "../kinds/workload/isolation.ts";
import { createOutboundRefusals } from "../kinds/workload/outbound-refusals.ts";
import { createOutboundRules, type OutboundRules } from "../kinds/workload/outbound-rules.ts";
import { createWorkspaceAuthorities } from "../kinds/workload/workspace-authority.ts";
import { Activity } from "../lib/activity.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import { startMetering } from "../metering/metering.ts";
import { type ResourceMetrics, startResourceMetrics } from "../metering/resource-metrics/recorder.ts";
import { addUsageCounters } from "../metering/usage-counters.ts";
import { openBlobStore } from "../node/blobs/blob-store.ts";
import { Builder } from "../node/builds/builder.ts";
import { createCacheBook } from "../node/builds/cache-book.ts";
import { need } from "../node/capabilities/need.ts";
import type { Driver, OnStop } from "../node/driver.ts";
import { SHARED_DRIVERS } from "../node/drivers/index.ts";
import { proveAddress } from "../node/egress/address-proof.ts";
import { forwardingDriver } from "../node/forwarding-driver.ts";
import { BlobUploads } from "../node/images/blob-uploads.ts";
import { commandReader } from "../node/images/image-command.ts";
import { Puller } from "../node/images/puller.ts";
import { type LazyDriver, lazyDriver } from "../node/lazy-driver.ts";
import { openLogRoom } from "../node/logs/log-room.ts";
import { createTraffic } from "../node/traffic.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import { nameOfFolder } from "./folder.ts";
import type { Foundation } from "./foundation.ts";
import { createDoors, openMachine, runningSince, storedMb } from "./machine.ts";
import { registriesOf } from "./registries.ts";
import { runningInstances } from "./running-instances.ts";
import { logBounds, machineMemory } from "./settings.ts";
import { openSharedBlobs } from "./shared-blobs.ts";
import type { Start } from "./start.ts";
import { unknownWorkspaces } from "./unknown-workspaces.ts";

export interface StartedNode {
  node: Node;
  driver: LazyDriver;
  doors: ReturnType<typeof createDoors>;
  nodeRegistry: NodeRegistry;
  metrics: ResourceMetrics;
  /** Says what becomes of running workloads when the server stops; until then it is as configured. */
  onStop(workloads: OnStop): void;
}

export interface MachineOptions {
  /** Where workloads run; absent = this machine. */
  openDriver?(doors: ReturnType<typeof createDoors>): Promise<Driver>;
  /** The driver is one that any server can use for any workload; see Nodes.shared. */
  machineShared?: boolean;
}

export async function startNode(
  start: Start,
  { disk, store, registry }: Foundation,
  { openDriver, machineShared }: MachineOptions,
): Promise<StartedNode> {
  const { config, clock, log, settings, prices, holder, stack } = start;
  const activity = new Activity(clock);
  const doors = createDoors(log);
  const logs = stack.add(
    openLogRoom({
      dir: join(config.data, "logs"),
      clock,
      bounds: logBounds(config),
      lastUsedMs: (uid) => activity.lastOf(uid),
      onError: (error) => log.warn({ err: error }, "the output of workloads could not be kept"),
    }),
  );
  const traffic = createTraffic(() => driver);
  const rules = stack.add(
    createOutboundRules({
      store,
      node: settings.nodeId,
      networks: settings.vpcNetworks,
      bandwidthMbps: config.bandwidth_mbps,
      driver: () => driver,
      onError: (error) => log.warn({ err: error }, "the outbound rules of a workload could not be read"),
    }),
  );
  const unknown = await unknownWorkspaces(settings.vpcNetworks, store);
  if (unknown.length > 0)
    log.warn({ workspaces: unknown }, "vpc_networks names workspaces that do not exist: nobody uses these networks");
  const authorities = createWorkspaceAuthorities({ store, clock, brand: config.brand });
  const identityToken = createIdentityTokens({ store, clock, issuer: () => settings.publicUrl });
  const ownerOf = async (uid: string): Promise<Resource> => {
    const owner = await rules.ownerOf(uid);
    if (!owner || owner.retired) throw new Error(`workload ${uid} has no owner`);
    return owner;
  };
  const outbound = {
    rules,
    neighbours: createNeighbours({ store, clock, activity, node: settings.nodeId, rules }),
    onRefused: createOutboundRefusals({ store, registry, rules, log }),
    credentialOf: async (uid: string, host: string) => authorities.credentialOf((await ownerOf(uid)).workspace, host),
    identityOf: async (uid: string, audience: string) => identityToken(await ownerOf(uid), audience),
  };
  const shared = machineShared ?? SHARED_DRIVERS.includes(config.driver);
  const isLive = (node: string): boolean => nodeRegistry.nodes.isLive(node);
  const registries = registriesOf(config, log);
  const commandOf = commandReader(registries);
  const parts = { config, settings, doors, traffic, outbound, isLive, commandOf, log };
  const machine = (): Promise<Driver> => (openDriver ? openDriver(doors) : openMachine(parts));
  const driver = lazyDriver({
    name: config.driver,
    node: settings.nodeId,
    open: async () => logs.listenTo(ownedDriver(await machine(), rules, store), shared),
  });
  const puller = stack.add(
    new Puller({
      dir: join(config.data, "pulls"),
      registries,
      images: () => need(driver, "images"),
      bytesMax: settings.imageBytesMax,
    }),
  );
  const sharedBlobs = await openSharedBlobs({ config, store, log });
  const blobs = openBlobStore(join(config.data, "blobs"), sharedBlobs);
  const blobUploads = new BlobUploads({ blobs, clock, bytesMax: settings.imageBytesMax });
  let workloadsOnStop: OnStop = onStopOf(config);
  stack.defer(() => driver.stop(workloadsOnStop));
  const builder = stack.add(
    new Builder({
      ...{ driver, logs, makeFolder: () => blobs.makeWorkFolder(), shortage: () => disk.shortage() },
      caches: createCacheBook(blobs),
    }),
  );
  const nodeRegistry = await register(start, store, driver, shared);
  const { meter, egress } = stack.add(
    await startMetering({
      store,
      book: prices,
      clock,
      monotonicMs: () => performance.now(),
      node: settings.nodeId,
      holder,
      runningSince: (uid) => runningSince(driver, uid),
      storedMb: (stored, owner) => storedMb({ store, driver, settings }, stored, owner),
      traffic,
      onError: (error) => log.warn({ err: error }, "usage could not be recorded yet, trying again"),
    }),
  );
  addUsageCounters(registry, store.usage);
  const metrics = stack.add(
    startResourceMetrics({
      ...{ records: store.records, clock, node: settings.nodeId },
      monotonicMs: () => performance.now(),
      running: runningInstances({ driver, rules, leases: store.leases, holder, shared }),
      onError: (error) => log.warn({ err: error }, "the metrics of resources could not be recorded"),
    }),
  );
  stack.add(
    startEgressDeployment({
      ...{ store, clock, isLive, node: settings.nodeId },
      prove: (address, isProven) => proveAddress(address, { probes: config.egress_probe, isProven }),
      onError: (error) => log.warn({ err: error }, "the egress addresses could not be looked at"),
    }),
  );
  return {
    ...{ driver, doors, nodeRegistry, metrics },
    node: {
      ...{ driver, disk, logs, activity, meter, egress, puller, builder, blobs, sharedBlobs, blobUploads, authorities },
    },
    onStop: (workloads) => {
      workloadsOnStop = workloads;
    },
  };
}

/** The owner of a workload is known before its first process runs, so its outbound rules and its isolation are too. */
const ownedDriver = (driver: Driver, rules: OutboundRules, store: Store): Driver => ({
  ...forwardingDriver({ name: driver.name, node: driver.node, target: () => driver }),
  async create(spec, options) {
    rules.own(spec);
    const owner = await rules.ownerOf(spec.uid);
    const isolation = owner ? await leastIsolation(owner, store) : undefined;
    return driver.create(isolation === undefined ? spec : { ...spec, isolation }, options);
  },
});

const MB = 2 ** 20;

/** Enters this node into the list of nodes, and gives it the resources that are its own. */
async function register(start: Start, store: Store, driver: LazyDriver, shared: boolean): Promise<NodeRegistry> {
  const { config, log, version, identity, holder, stack } = start;
  const registry = stack.add(
    await startNodeRegistry({
      ...{ store, log, identity },
      folder: nameOfFolder(config.data),
      session: holder,
      facts: () => ({
        version,
        driver: driver.name,
        capabilities: driver.capabilities,
        memoryMb: Math.floor(machineMemory() / MB),
        cpus: availableParallelism(),
        usedMb: Math.max(0, Math.floor((machineMemory() - process.availableMemory()) / MB)),
      }),
      runs: () => driver.runs,
      lostAfterMs: config.node_lost_after * SECOND_MS,
      shared,
      monotonicMs: () => performance.now(),
    }),
  );
  if (store.database.dialect === "sqlite" && !shared) await store.ownership.adoptAll(identity.id, PLACED_KINDS);
  return registry;
}
