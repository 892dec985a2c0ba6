/**
 * Pulls images of registries onto this machine. The driver's name for a pulled image is the digest of its manifest, so
 * that all workspaces and tags with the same content share one image; who may use it is decided by the records.
 */
import { mkdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../contract/errors.ts";
import { type Reference, repositoryText } from "../../contract/image-reference.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import { randomWord } from "../../lib/ids.ts";
import { HOUR_MS } from "../../lib/time/clock.ts";
import { downloadBlob } from "../../registry/blob.ts";
import type { FindCredentials } from "../../registry/credentials.ts";
import { describeImage, digestOf, type RemoteImage, type RemoteLayer } from "../../registry/manifest.ts";
import { BRIEF, PATIENT, type Patience, withPatience } from "../../registry/patience.ts";
import { broken, PullRefused, RegistryProblem } from "../../registry/problem.ts";
import { fromFirst, type Registries } from "../../registry/registries.ts";
import type { Source } from "../../registry/repository.ts";
import { fetchSignatures, type ImageSignature } from "../../registry/signature.ts";
import type { Assembly, Images } from "../capabilities/images.ts";
import { archiveAssembly } from "./archive-assembly.ts";
import { type Download, Downloads } from "./downloads.ts";

/** Driver names of pulled images. A reference of a client may not use this prefix. */
export const PULLED_PREFIX = "pulled/";

export const pulledName = (digest: string): string => `${PULLED_PREFIX}${digest.replace(":", "-")}`;

export interface PullRequest {
  /** The workspace that asks: workspaces take turns. */
  workspace: string;
  reference: Reference;
  /** Of the workspace that asks. */
  credentials: FindCredentials;
  /** For an image that was pushed to this platform. `repository` tells its layers from those of other repositories. */
  own?: { source: Source; repository: string };
  /** Asked before the registry for content that is known: the other servers of the platform. */
  near?: Source;
}

/** Asks the registry itself: what a tag leads to now, and signatures, are known there alone. */
export const withoutNear = ({ near: _, ...request }: PullRequest): PullRequest => request;

export interface Pulled {
  /** The driver's name for the image. */
  name: string;
  /** Digest of the manifest for this machine: what runs. */
  digest: string;
  /** Digest that the reference led to; differs from `digest` when that is an index of several platforms. */
  named: string;
  /** Of the unpacked files. */
  sizeBytes: number;
  /** Bytes that were downloaded for it. */
  downloadedBytes: number;
}

export interface Progress {
  layers: number;
  /** Layers that are unpacked. */
  layersDone: number;
  bytes: number;
  bytesDone: number;
}

export interface PullOptions {
  signal: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

export interface PullerOptions {
  /** Folder of downloads. */
  dir: string;
  registries: Registries;
  images: () => Promise<Images>;
  /** Largest image, compressed. */
  bytesMax: number;
  /** How long failing requests are repeated. */
  patience?: Patience;
}

/** Pulls on this machine. One workspace never takes all places: its registry may be as slow as it likes. */
const TURNS = { atOnce: 6, atOncePerOwner: 2, waitingMax: 50 };
/** Layers of one image that are downloaded at a time. */
const DOWNLOADS_AT_ONCE = 3;
/** A download that failed may be continued for this long. */
const PARTS_KEPT_MS = 24 * HOUR_MS;
const PULL_MAX_MS = 2 * HOUR_MS;
/** Free space that downloads leave to the workloads on this disk. */
const DISK_RESERVE_BYTES = 512 * 1024 ** 2;

export class Puller {
  readonly #options: PullerOptions;
  readonly #downloads: Downloads;
  readonly #held = new Map<string, number>();
  readonly #background = new Map<string, Promise<void>>();
  readonly #turns = new FairQueue(TURNS);
  /** Pulls whose bytes are not all on the disk yet. */
  readonly #arriving = new Set<Progress>();
  readonly #stopping = new AbortController();

  constructor(options: PullerOptions) {
    this.#options = options;
    this.#downloads = new Downloads(options.dir);
  }

  /** Asks the registry what it has under the reference, for a caller that waits. Throws PullRefused. */
  look(request: PullRequest, signal: AbortSignal): Promise<RemoteImage> {
    const { reference } = request;
    return this.#refusing(reference, async () => {
      return fromFirst(this.#sources(request), (source) => this.#describe(source, reference, BRIEF, signal));
    });
  }

  /** What the reference leads to now, for the cheapest question that a registry answers. */
  async named(request: PullRequest, signal: AbortSignal): Promise<string | null> {
    const { reference } = request;
    return this.#refusing(reference, async () => {
      const ask = (source: Source): Promise<string | null> =>
        withPatience(BRIEF, signal, () => digestOf(source, reference, signal));
      return fromFirst(this.#sources(withoutNear(request)), ask);
    });
  }

  /** The signatures of what has this digest in the repository of the reference. Throws PullRefused. */
  signatures(request: PullRequest, digest: string, signal: AbortSignal): Promise<ImageSignature[]> {
    const ask = (source: Source): Promise<ImageSignature[]> =>
      withPatience(BRIEF, signal, () => fetchSignatures(source, digest, signal));
    return this.#refusing(request.reference, async () => fromFirst(this.#sources(withoutNear(request)), ask));
  }

  /** Refuses a registry that the operator does not allow. Throws PullRefused. */
  requireAllowed(request: PullRequest): Promise<void> {
    return this.#refusing(request.reference, async () => void this.#sources(request));
  }

  #sources({ reference, credentials, own, near }: PullRequest): readonly Source[] {
    if (own) return [own.source];
    return [...(near ? [near] : []), ...this.#options.registries.sourcesOf(reference, credentials)];
  }

  /**
   * Pulls an image; throws PullRefused. `keep` records it: until that is done, the image is not removed although no
   * record names it.
   */
  async pull<T>(request: PullRequest, options: PullOptions, keep: (pulled: Pulled) => Promise<T>): Promise<T> {
    const { workspace } = request;
    const signal = AbortSignal.any([options.signal, this.#stopping.signal]);
    const begun = Promise.withResolvers<void>();
    const turn = this.#turns.run(workspace, async () => {
      begun.resolve();
      signal.throwIfAborted();
      return this.#pull(request, { ...options, signal }, keep);
    });
    if (turn === null) return refuseTurn();
    turn.catch(() => {}); // nobody waits for a turn that comes after the abort
    await orAborted(begun.promise, signal);
    return turn;
  }

  /** Refuses a workspace of which too many pulls wait. */
  requireTurn(workspace: string): void {
    if (!this.#turns.hasRoom(workspace)) refuseTurn();
  }

  async #pull<T>(
    request: PullRequest,
    { signal: asked, onProgress = () => {} }: PullOptions,
    keep: (pulled: Pulled) => Promise<T>,
  ): Promise<T> {
    const signal = AbortSignal.any([asked, AbortSignal.timeout(PULL_MAX_MS)]);
    const { reference } = request;
    return this.#refusing(reference, async () => {
      const sources = this.#sources(request);
      const patience = this.#options.patience ?? PATIENT;
      const remote = await fromFirst(sources, (source) => this.#describe(source, reference, patience, signal));
      const name = pulledName(remote.digest);
      const repository = request.own?.repository ?? repositoryText(reference);
      return this.holding(name, async () => {
        const installed = await this.#install(remote, { name, sources, repository, signal, onProgress });
        return keep({ name, digest: remote.digest, named: remote.named, ...installed });
      });
    });
  }

  /** Runs a pull that nobody waits for, once for each key. `work` handles its own failures. */
  background(key: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#background.has(key) || this.#stopping.signal.aborted) return;
    const going = work(this.#stopping.signal).finally(() => this.#background.delete(key));
    this.#background.set(key, going);
  }

  /** Keeps an image while the work records it, although no record names it yet. */
  async holding<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#held.get(name) ?? 1) - 1;
      if (left === 0) this.#held.delete(name);
      else this.#held.set(name, left);
    }
  }

  /** Whether a pull is about to record this image. */
  isHeld(name: string): boolean {
    return this.#held.has(name);
  }

  /** Removes what broken downloads left. */
  sweep(nowMs: number): Promise<void> {
    return this.#downloads.sweep(nowMs - PARTS_KEPT_MS);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new PlatformError("unavailable", "The server is stopping."));
    await Promise.allSettled(this.#background.values());
    await this.#options.registries.stop();
  }

  #describe(source: Source, reference: Reference, patience: Patience, signal: AbortSignal): Promise<RemoteImage> {
    const { bytesMax } = this.#options;
    return withPatience(patience, signal, () => describeImage(source, reference, { signal, bytesMax }));
  }

  async #install(remote: RemoteImage, pull: Installing): Promise<Pick<Pulled, "sizeBytes" | "downloadedBytes">> {
    const { name, repository, signal, onProgress } = pull;
    const images = await this.#options.images();
    await using assembly = await this.#assemble(images, remote, repository);
    const missing = remote.layers.slice(assembly.present);
    const progress: Progress = {
      layers: remote.layers.length,
      layersDone: assembly.present,
      bytes: missing.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      bytesDone: 0,
    };
    using _space = await this.#takeSpace(progress);
    onProgress({ ...progress });
    await using layers = new LayerQueue(missing, (layer) =>
      this.#take(layer, pull, (bytes) => {
        progress.bytesDone += bytes;
        onProgress({ ...progress });
      }),
    );
    for (const _ of missing) {
      const { file, done } = await layers.next();
      await orAborted(done, signal);
      await assembly.add(file, { signal });
      progress.layersDone += 1;
      onProgress({ ...progress });
    }
    const { sizeBytes } = await assembly.finish(name, { signal });
    return { sizeBytes, downloadedBytes: progress.bytes };
  }

  /** Counts what the pull will still bring as taken, until the pull ends. */
  async #takeSpace(progress: Progress): Promise<Disposable> {
    await mkdir(this.#options.dir, { recursive: true });
    const { bavail, bsize } = await statfs(this.#options.dir);
    // No other pull is counted between this sum and the entry below.
    const arriving = [...this.#arriving].reduce((sum, each) => sum + Math.max(0, each.bytes - each.bytesDone), 0);
    const freeBytes = Math.max(0, bavail * bsize - DISK_RESERVE_BYTES - arriving);
    if (progress.bytes > freeBytes)
      throw new RegistryProblem("too_large", `it has ${progress.bytes} bytes, and the disk has room for ${freeBytes}`);
    this.#arriving.add(progress);
    return { [Symbol.dispose]: () => this.#arriving.delete(progress) };
  }

  async #assemble(images: Images, remote: RemoteImage, repository: string): Promise<Assembly> {
    if (images.assemble) return images.assemble(remote, repository);
    return archiveAssembly(images, remote, join(this.#options.dir, `${randomWord(20)}.tar`));
  }

  async #take(
    layer: RemoteLayer,
    { sources, repository }: Installing,
    onBytes: (bytes: number) => void,
  ): Promise<Download> {
    const file = await sources[0]?.fileOf?.(layer.digest);
    if (file) return { file, done: Promise.resolve(), async [Symbol.asyncDispose]() {} };
    const patience = this.#options.patience ?? PATIENT;
    return this.#downloads.take(repository, layer.digest, async (file, signal) => {
      try {
        await fromFirst(sources, (source) => downloadBlob(source, layer, file, { signal, patience, onBytes }));
      } catch (error) {
        // Bytes of a layer that is not what it should be are no beginning to continue from.
        if (error instanceof RegistryProblem && !error.isTransient) await rm(file, { force: true });
        throw error;
      }
    });
  }

  async #refusing<T>(reference: Reference, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof RegistryProblem) throw new PullRefused(reference, error);
      if (error instanceof DOMException && error.name === "TimeoutError") throw new PullRefused(reference, late(error));
      // The refusal of an archive does not know where the archive came from.
      if (error instanceof PlatformError && error.code === "bad_request")
        throw new PullRefused(reference, broken(error.message.replace(/\.$/, ""), error));
      throw error;
    }
  }
}

function refuseTurn(): never {
  const message = `${TURNS.waitingMax} pulls of this workspace wait already. Ask again when some of them are done.`;
  throw new PlatformError("too_many_requests", message, { headers: { "retry-after": "10" } });
}

const late = (cause: unknown): RegistryProblem =>
  new RegistryProblem("unreachable", "its registry did not answer in time", { cause });

interface Installing {
  name: string;
  sources: readonly Source[];
  repository: string;
  signal: AbortSignal;
  onProgress: (progress: Progress) => void;
}

/** Starts downloads a few layers ahead of the one that is needed next. */
class LayerQueue implements AsyncDisposable {
  readonly #waiting: RemoteLayer[];
  readonly #take: (layer: RemoteLayer) => Promise<Download>;
  readonly #ahead: Promise<Download>[] = [];
  readonly #taken: Promise<Download>[] = [];

  constructor(layers: readonly RemoteLayer[], take: (layer: RemoteLayer) => Promise<Download>) {
    this.#waiting = [...layers];
    this.#take = take;
    while (this.#ahead.length < DOWNLOADS_AT_ONCE && this.#start());
  }

  next(): Promise<Download> {
    const download = this.#ahead.shift();
    if (!download) throw new Error("an image has no further layer");
    return download;
  }

  #start(): boolean {
    const layer = this.#waiting.shift();
    if (!layer) return false;
    const download = this.#take(layer);
    // When one is here the next begins. The failure of one that is not waited for yet is told when it is.
    void download.then(({ done }) => done.then(() => this.#start())).catch(() => {});
    this.#ahead.push(download);
    this.#taken.push(download);
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#waiting.length = 0;
    const taken = await Promise.allSettled(this.#taken);
    await Promise.all(
      taken.map((each) => (each.status === "fulfilled" ? each.value[Symbol.asyncDispose]() : undefined)),
    );
  }
}

/** Ends when the signal does, although the work goes on: a download is shared with other pulls, a turn comes later. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(signal.reason);
  signal.addEventListener("abort", end);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}
