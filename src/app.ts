/** The composition root: the phases of a start, in order. `composition/` has one file for each. */
import type { Logger } from "pino";
import { ADMIN_EMAIL, type Bootstrapped } from "./auth/bootstrap.ts";
import { makeConsoleLink } from "./auth/console/console-link.ts";
import { startBackground } from "./composition/background.ts";
import { createDriveFiles, DRIVE_FILES } from "./composition/drive-files.ts";
import { createExamination } from "./composition/examination.ts";
import { takeFolder } from "./composition/folder.ts";
import { layFoundation } from "./composition/foundation.ts";
import { startIdentity } from "./composition/identity.ts";
import { startInference } from "./composition/inference.ts";
import { joinNode } from "./composition/join-node.ts";
import { startManagement } from "./composition/management.ts";
import { type MachineOptions, startNode } from "./composition/node.ts";
import { allLogsOf, findingsOf, partOfPeerOf, startPeers } from "./composition/peers.ts";
import type { createS3Door, S3Door } from "./composition/s3.ts";
import { modelPrices, privateAddressesOf, settingsOf, usagePrices } from "./composition/settings.ts";
import type { Start } from "./composition/start.ts";
import { type Config, clientUrl } from "./config.ts";
import type { Edge } from "./http/edge.ts";
import { BEHAVIOURS } from "./kinds/behaviour.ts";
import { DriveUses } from "./kinds/drive/drive-uses.ts";
import { createFeed } from "./kinds/watch/feed.ts";
import { randomWord } from "./lib/ids.ts";
import { type Running, Stack } from "./lib/lifecycle.ts";
import type { TakenPort } from "./lib/network/held-port.ts";
import { createOutbound } from "./lib/network/outbound-http.ts";
import { hasS3 } from "./lib/schemas/s3-settings.ts";
import { type Clock, systemClock } from "./lib/time/clock.ts";
import { createProviderPort } from "./models/provider-port.ts";
import type { OnStop } from "./node/driver.ts";
import type { Store } from "./store/store.ts";

export interface App extends Running {
  /** What becomes of running workloads; default: as configured. */
  stop(workloads?: OnStop): Promise<void>;
  /** Address of the management API without the prefix, as clients know it. */
  url: string;
  /** Origin of the pages for people. */
  pagesUrl: string;
  /** Address that the server listens on; differs from `url` behind a public address. */
  listensAt: string;
  bootstrapped: Bootstrapped;
  /** A link that opens the console as the first admin; null when that person no longer exists. */
  consoleLink(): Promise<string | null>;
  store: Store;
  /** The port, for an upgrade that hands it on. */
  port: Pick<Edge, "hold" | "adopt" | "fd">;
  /** Process ids of the edge processes that serve. */
  edgePids(): number[];
  /** Replaces the edge processes one after another, and drops no connection. */
  restartEdges(): Promise<void>;
  /** Whether workloads can run on this machine. */
  runsWorkloads(): Promise<boolean>;
  /** Goes over to the next secret key, when there is one; see `berth rotate-key`. */
  rotateKey(): void;
}

export interface AppOptions extends MachineOptions {
  config: Config;
  log: Logger;
  version: string;
  clock?: Clock;
  /** The port of an earlier server; absent = a new one. */
  port?: TakenPort | undefined;
  /** Fail where workloads cannot run, instead of serving everything else. */
  requireMachine?: boolean;
}

export async function startApp(options: AppOptions): Promise<App> {
  const stack = new Stack();
  try {
    const start = begin(options, stack);
    const { config, clock, log, settings, prices } = start;
    const foundation = await layFoundation(start);
    const { store, bootstrapped, rotateKey } = foundation;
    const identity = await startIdentity(start, foundation);
    const started = await startNode(start, foundation, options);
    const examine = createExamination(config, started.driver);
    const driveFiles = createDriveFiles(() => deps);
    const talks = { [DRIVE_FILES]: driveFiles.answer };
    const peers = await startPeers(start, foundation, started, () => inference.gateway, examine, talks);
    const { platform, deps } = joinNode(
      {
        ...{ store, clock, settings, log, prices },
        nodes: started.nodeRegistry.nodes,
        providers: createProviderPort(store, clock, () => inference.models),
        outbound: stack.add(createOutbound({ privateAddresses: privateAddressesOf(config) })),
        reconciledKinds: BEHAVIOURS.filter((half) => half.reconciled).map((half) => half.kind.name),
        keyFor: store.keyFor,
        feed: stack.add(createFeed(store)),
        allLogs: allLogsOf(started, peers),
        findingsOf: findingsOf(started, peers, examine),
        partOfPeer: partOfPeerOf(started, peers),
      },
      started.node,
    );
    const inference = await startInference(
      ...([start, foundation, identity, deps, started.metrics, peers?.gateway] as const),
      (req, res) => edge.manage(req, res),
      (operation, request) => directCall(operation, request),
    );
    const uses = new DriveUses(deps);
    await startBackground(start, started, deps, uses, inference.gateway);
    const s3 = hasS3(config) ? await openS3(start, identity, deps, uses, peers ? inference.gateway : null) : null;
    const { edge, directCall } = await startManagement(start, foundation, identity, platform, inference, peers, s3);
    if (options.requireMachine) await started.driver.opened();
    const listensAt = await edge.listen(options.port);
    settings.publicUrl = await clientUrl(config, Number(new URL(listensAt).port) || config.port);
    await inference.edges?.serve(edge);
    started.doors.open(edge);
    await peers?.open(edge);
    if (peers) await driveFiles.open(start, peers.peers);
    await s3?.listen();
    return {
      ...{ listensAt, bootstrapped, store, rotateKey },
      url: settings.publicUrl,
      pagesUrl: identity.pagesUrl(),
      consoleLink: async () => {
        const admin = await store.people.getUser(ADMIN_EMAIL);
        if (!admin) return null;
        const link = await makeConsoleLink({ store, clock }, identity.pagesUrl(), { sub: admin.sub, hangsOn: null });
        return link.url;
      },
      port: {
        adopt: edge.adopt,
        fd: edge.fd,
        hold(drainMs) {
          const port = edge.hold(drainMs);
          inference.edges?.hold(drainMs, (socket) => port.hold(socket));
          return port;
        },
      },
      edgePids: () => inference.edges?.pids() ?? [],
      restartEdges: async () => inference.edges?.restart(),
      runsWorkloads: () =>
        started.driver.opened().then(
          () => true,
          () => false,
        ),
      stop: (workloads) => {
        if (workloads) started.onStop(workloads);
        return stack.stop();
      },
    };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/** Loaded here, because few servers have the S3 door. */
async function openS3(...parts: Parameters<typeof createS3Door>): Promise<S3Door> {
  const { createS3Door } = await import("./composition/s3.ts");
  return createS3Door(...parts);
}

/** Reads all that the operator wrote before anything is made: the first key is shown only by a start that succeeds. */
function begin({ config, log, version, clock = systemClock }: AppOptions, stack: Stack): Start {
  const given = {
    settings: settingsOf(config, version),
    prices: usagePrices(config),
    modelPrices: modelPrices(config),
  };
  const identity = takeFolder(config, clock, stack);
  return {
    ...{ config, log, version, clock, stack, identity },
    ...given,
    settings: { ...given.settings, nodeId: identity.id },
    holder: `${identity.id}/${process.pid}/${randomWord(6)}`,
  };
}
