/** Builds an image from a Dockerfile: stage by stage, each step that changes files in a workload of its own. */

import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../contract/errors.ts";
import { type LogTag, SEVERITY } from "../../contract/log-line.ts";
import { type BuildConfig, EMPTY_CONFIG } from "../../dockerfile/config.ts";
import type { CopyStep } from "../../dockerfile/copy-step.ts";
import { DockerfileRefused } from "../../dockerfile/refusal.ts";
import { SECRETS_PATH } from "../../dockerfile/run-mounts.ts";
import type { RunStep } from "../../dockerfile/run-step.ts";
import { DOCKERFILE_BYTES_MAX } from "../../dockerfile/source.ts";
import { type Dockerfile, neededStages, readDockerfile, stageNamed } from "../../dockerfile/stages.ts";
import { type FolderStep, planStage, type Step } from "../../dockerfile/steps.ts";
import { bytesText } from "../../lib/bytes-text.ts";
import { randomWord } from "../../lib/ids.ts";
import { ownValue } from "../../lib/own-value.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import type { Building } from "../capabilities/building.ts";
import type { Drives } from "../capabilities/drives.ts";
import type { Image, Images } from "../capabilities/images.ts";
import type { Driver } from "../driver.ts";
import type { Mount } from "../workload.ts";
import { BuildFailed } from "./build-failed.ts";
import { CACHES_MAX, type CacheBook } from "./cache-book.ts";
import { BuildContext } from "./context.ts";
import { configOf, documentOf } from "./image-document.ts";
import { BUILT_PREFIX, cacheDrive, stepBase, stepKey, stepName } from "./step-names.ts";
import { filesCommand, runStep, type StepRun } from "./step-workload.ts";

export interface BuildRequest {
  /** Workloads of the build have uids that begin with it. */
  id: string;
  /** The workspace, together with something that no later workspace of the same name has. */
  owner: string;
  /** Folder with the context; the build changes it. */
  folder: string;
  /** Path of the Dockerfile in the context. */
  dockerfile: string;
  args: Readonly<Record<string, string>>;
  target?: string | undefined;
  noCache: boolean;
  secrets: Readonly<Record<string, string>>;
  /** Variables of every command that no image keeps: registries, certificates. */
  env: Readonly<Record<string, string>>;
  /** Mounts of every command that no image keeps: certificates. */
  mounts: readonly Mount[];
  log?: LogTag;
  /** Brings the image that a FROM names onto this machine, and answers with the driver's name for it. */
  base(name: string, signal: AbortSignal): Promise<string>;
}

export interface BuildParts {
  driver: Driver;
  building: Building;
  images: Images;
  drives: Drives;
  /** Makes a folder for work in progress. */
  makeFolder(): Promise<string>;
  say(text: string, severity: number): void;
  /** Why a build has to end, such as a full disk. */
  shortage(): string | null;
  /** Notes that a folder of `--mount=type=cache` is in use; those that no build uses any more are removed. */
  caches: CacheBook;
  /** What the caches of a workspace may hold together. */
  cacheBytesMax: number;
  /** Holds the image of a step, or the drive of a cache, as long as the build goes on. */
  hold(name: string): void;
}

export interface BuiltImage {
  /** The driver's name for the image. */
  name: string;
  image: Image;
}

/** A stage that is built: the image with its files, what it says of itself, and what its files depend on. */
interface Built {
  image: string | null;
  config: BuildConfig;
  key: string;
}

/** Folders of a step that copies: the context or taken files, and the place where taken files go. */
const [FROM_PATH, INTO_PATH] = ["/run/build/from", "/run/build/into"];
/** The daemon replaces it for commands of another user. */
const ROOT_HOME = "/root";
const ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;

export async function buildImage(request: BuildRequest, parts: BuildParts, signal: AbortSignal): Promise<BuiltImage> {
  const build = new ImageBuild(request, parts, signal);
  try {
    return await build.run();
  } catch (error) {
    throw error instanceof DockerfileRefused ? new BuildFailed(error.message) : error;
  } finally {
    await build.dispose();
  }
}

class ImageBuild {
  readonly #request: BuildRequest;
  readonly #parts: BuildParts;
  readonly #signal: AbortSignal;
  readonly #stages = new Map<number, Built>();
  readonly #bases = new Map<string, Promise<Built>>();
  readonly #drives: string[] = [];
  readonly #caches = new Set<string>();
  /** Caches of the workspace that this build does not mount, the most recently used first. */
  #otherCaches: string[] = [];
  #context: Promise<BuildContext> | null = null;
  #contextDrive: Promise<string> | null = null;
  #steps = 0;

  constructor(request: BuildRequest, parts: BuildParts, signal: AbortSignal) {
    this.#request = request;
    this.#parts = parts;
    this.#signal = signal;
  }

  async run(): Promise<BuiltImage> {
    const { args, target, folder, dockerfile: file } = this.#request;
    const text = await dockerfileText(folder, file);
    const dockerfile = readDockerfile(text, { args, target, architecture: ARCHITECTURE });
    const usedArgs = new Set(Object.keys(dockerfile.globals));
    for (const index of neededStages(dockerfile)) {
      const { usedArgs: used } = await this.#buildStage(dockerfile, index);
      for (const name of used) usedArgs.add(name);
    }
    const unused = Object.keys(args).filter((name) => !usedArgs.has(name));
    if (unused.length > 0) this.#say(`No ARG names the build argument ${unused.join(", ")}.`, SEVERITY.WARNING);
    const last = this.#stages.get(dockerfile.target);
    if (!last) throw new Error("the target of a build was not built");
    const name = `${BUILT_PREFIX}${randomWord(20)}`;
    const image = await this.#parts.building.derive(name, last.image, documentOf(last.config));
    this.#say(`Built ${image.digest}, ${bytesText(image.sizeBytes)}.`);
    return { name, image };
  }

  async dispose(): Promise<void> {
    for (const id of this.#drives) await this.#parts.drives.destroy(id);
  }

  async #buildStage(dockerfile: Dockerfile, index: number): Promise<{ usedArgs: string[] }> {
    const stage = dockerfile.stages[index];
    if (!stage) throw new Error(`there is no stage ${index}`);
    const { args } = this.#request;
    const from =
      stage.from === "scratch"
        ? "scratch"
        : "stage" in stage.from
          ? (dockerfile.stages[stage.from.stage]?.name ?? stage.from.stage)
          : stage.from.image;
    this.#say(`FROM ${from}${stage.name === null ? "" : ` AS ${stage.name}`}`);
    const base =
      stage.from === "scratch"
        ? { image: null, config: EMPTY_CONFIG, key: "scratch" }
        : "stage" in stage.from
          ? this.#stage(stage.from.stage)
          : await this.#base(stage.from.image);
    const plan = planStage(dockerfile, index, { base: base.config, args, architecture: ARCHITECTURE });
    for (const note of plan.notes) this.#say(note, SEVERITY.WARNING);
    let { image, key } = base;
    for (const step of plan.steps) {
      this.#signal.throwIfAborted();
      ({ image, key } = await this.#step(step, { image, key }, dockerfile, index));
    }
    this.#stages.set(index, { image, key, config: plan.config });
    return { usedArgs: plan.usedArgs };
  }

  #stage(index: number): Built {
    const found = this.#stages.get(index);
    if (!found) throw new Error(`stage ${index} is needed before it is built`);
    return found;
  }

  #base(name: string): Promise<Built> {
    const known = this.#bases.get(name) ?? this.#findBase(name);
    this.#bases.set(name, known);
    return known;
  }

  async #findBase(name: string): Promise<Built> {
    const loaded = await this.#request.base(name, this.#signal);
    const image = await this.#parts.images.find(loaded);
    if (!image) throw new BuildFailed(`There is no image ${name}.`);
    if ((image.document?.OnBuild ?? []).length > 0)
      this.#say(`The ONBUILD instructions of ${name} are not run.`, SEVERITY.WARNING);
    return { image: loaded, config: configOf(image), key: image.digest };
  }

  /** The files that `--from` means. */
  #from(name: string, dockerfile: Dockerfile, index: number): Built | Promise<Built> {
    const stage = stageNamed(dockerfile.stages.slice(0, index), name);
    return stage === null ? this.#base(name) : this.#stage(stage);
  }

  async #step(
    step: Step,
    below: Pick<Built, "image" | "key">,
    dockerfile: Dockerfile,
    index: number,
  ): Promise<Pick<Built, "image" | "key">> {
    const { owner, noCache } = this.#request;
    const from = (name: string): Built | Promise<Built> => this.#from(name, dockerfile, index);
    const key = stepKey(owner, below.key, await this.#material(step, from));
    const name = stepName(owner, key);
    this.#parts.hold(name);
    this.#steps += 1;
    const cached = noCache ? null : await this.#parts.images.find(name);
    this.#say(`Step ${this.#steps}: ${step.text}${cached ? " (CACHED)" : ""}`);
    // Kept once more: the age of a step is the time since it was last used.
    if (cached) await this.#parts.building.derive(name, name, {});
    else if (step.kind === "run") await this.#run(step, below.image, name, from);
    else if (step.kind === "copy") await this.#copy(step, below.image, name, from);
    else await this.#folder(step, below.image, name);
    return { image: name, key };
  }

  /** Everything that the files of a step depend on, apart from the files below. */
  async #material(step: Step, from: (name: string) => Built | Promise<Built>): Promise<unknown> {
    const { line: _, text: __, ...own } = step;
    if (step.kind === "folder") return own;
    if (step.kind === "copy") return [own, await this.#digestOf(step.from, step.sources, step.line, from)];
    const mounted: unknown[] = [];
    for (const mount of step.mounts)
      if (mount.type === "bind") mounted.push(await this.#digestOf(mount.from, [mount.source], step.line, from));
    return [own, mounted];
  }

  async #digestOf(
    from: string | null,
    sources: readonly string[],
    line: number,
    find: (name: string) => Built | Promise<Built>,
  ): Promise<string> {
    if (from !== null) return (await find(from)).key;
    if (sources.length === 0) return "";
    const digest = await (await this.#openContext()).digest(sources);
    if (digest === null)
      throw new DockerfileRefused(line, `${sources.map((each) => `'${each}'`).join(", ")} is not in the context.`);
    return digest;
  }

  #openContext(): Promise<BuildContext> {
    const { folder, dockerfile } = this.#request;
    this.#context ??= BuildContext.open(folder, dockerfile);
    return this.#context;
  }

  #contextMount(): Promise<string> {
    this.#contextDrive ??= this.#openContext().then(({ folder }) => this.#drive(folder));
    return this.#contextDrive;
  }

  async #drive(folder?: string): Promise<string> {
    const id = `build-${randomWord(20)}`;
    this.#drives.push(id);
    await this.#parts.drives.create(id, { temporary: true, ...(folder === undefined ? {} : { from: folder }) });
    return id;
  }

  async #folder(step: FolderStep, image: string | null, name: string): Promise<void> {
    const what = `Dockerfile line ${step.line}: ${step.text}`;
    const exec = filesCommand({ do: "folder", path: step.path, owner: step.owner }, what);
    await this.#keep({ image, exec, what, mounts: [] }, name, []);
  }

  async #copy(
    step: CopyStep,
    image: string | null,
    name: string,
    from: (name: string) => Built | Promise<Built>,
  ): Promise<void> {
    const what = `Dockerfile line ${step.line}: ${step.text}`;
    const { files, target, intoFolder, mode, unpacks } = step;
    const isTaken = step.from !== null;
    const drive =
      step.from === null ? await this.#contextMount() : await this.#take(await from(step.from), step.sources, what);
    const job = {
      do: "put" as const,
      ...{ from: FROM_PATH, files, target, intoFolder, mode, unpacks },
      sources: isTaken ? null : step.sources,
      owner: step.owner ?? (isTaken ? null : "0:0"),
    };
    const mounts = [{ source: { drive }, path: FROM_PATH, readOnly: true }];
    await this.#keep({ image, exec: filesCommand(job, what), what, mounts }, name, [FROM_PATH]);
  }

  /** Copies files out of a stage into a drive. The program runs in the stage's own root and sees nothing else. */
  async #take({ image }: Built, sources: readonly string[], what: string): Promise<string> {
    const drive = await this.#drive();
    const exec = filesCommand({ do: "take", sources: [...sources], into: INTO_PATH }, what);
    await this.#work({ image, exec, what, mounts: [{ source: { drive }, path: INTO_PATH }] }, null);
    return drive;
  }

  async #run(
    step: RunStep,
    image: string | null,
    name: string,
    from: (name: string) => Built | Promise<Built>,
  ): Promise<void> {
    const what = `Dockerfile line ${step.line}: ${step.text}`;
    const { secrets, env: buildEnv, owner } = this.#request;
    const mounts: Mount[] = [...this.#request.mounts];
    const secretFiles: Record<string, string> = {};
    const env: Record<string, string> = { HOME: ROOT_HOME, ...buildEnv, ...step.env };
    for (const mount of step.mounts) {
      if (mount.type === "cache") {
        const drive = cacheDrive(owner, mount.id);
        await this.#openCache(drive, mount.id);
        mounts.push({ source: { drive }, path: mount.target });
      } else if (mount.type === "bind") {
        const drive =
          mount.from === null
            ? await this.#contextMount()
            : await this.#take(await from(mount.from), [mount.source], what);
        const path = mount.from === null ? `/${mount.source.replace(/^\/+|\/+$/g, "")}` : "/000000/content";
        mounts.push({ source: { drive, ...(path === "/" ? {} : { path }) }, path: mount.target, readOnly: true });
      } else {
        const value = ownValue(secrets, mount.id);
        if (value === undefined && mount.required)
          throw new DockerfileRefused(step.line, `the build got no secret '${mount.id}'.`);
        if (value === undefined) continue;
        if (mount.env !== null) env[mount.env] = value;
        if (mount.target !== null) secretFiles[mount.target.slice(SECRETS_PATH.length + 1)] = value;
      }
    }
    const hidden = Object.keys(secretFiles).length > 0 ? await this.#secretDrive(secretFiles) : null;
    if (hidden !== null) mounts.push({ source: { drive: hidden }, path: SECRETS_PATH, readOnly: true });
    try {
      const { workDir, user, network } = step;
      const work = { image, exec: { argv: step.argv }, what, mounts, env, workDir, user, network };
      const own = this.#request.mounts.map(({ path }) => path);
      await this.#keep(work, name, hidden === null ? own : [...own, SECRETS_PATH]);
    } finally {
      if (hidden !== null) await this.#parts.drives.destroy(hidden);
    }
  }

  /** A cache that an earlier build filled beyond the limit is emptied, so that this build can go on. */
  async #openCache(drive: string, id: string): Promise<void> {
    const { drives, caches, hold, cacheBytesMax } = this.#parts;
    if (!this.#caches.has(drive)) {
      hold(drive);
      if (((await drives.bytes(drive)) ?? 0) > cacheBytesMax) {
        await drives.destroy(drive);
        this.#say(`The cache '${id}' held more than ${bytesText(cacheBytesMax)} and was emptied.`, SEVERITY.WARNING);
      }
      this.#caches.add(drive);
    }
    await drives.create(drive);
    const all = await caches.use(this.#request.owner, drive);
    this.#otherCaches = all.filter((one) => !this.#caches.has(one)).reverse();
    await this.#makeCacheRoom();
  }

  /** What the caches of this build hold too much; null while there is room. */
  async #excess(): Promise<string | null> {
    const { cacheBytesMax } = this.#parts;
    const held = this.#caches.size === 0 ? 0 : await this.#makeCacheRoom();
    if (held <= cacheBytesMax) return null;
    return `the caches of the build hold ${bytesText(held)}, and may hold ${bytesText(cacheBytesMax)} together.`;
  }

  /**
   * Removes caches of the workspace that this build does not mount, the least recently used first, until all of them
   * are within the limit. Returns what the caches of this build hold.
   */
  async #makeCacheRoom(): Promise<number> {
    const { drives, caches, cacheBytesMax } = this.#parts;
    let mountedBytes = 0;
    for (const drive of this.#caches) mountedBytes += (await drives.bytes(drive)) ?? 0;
    let heldBytes = mountedBytes;
    const kept: string[] = [];
    for (const drive of this.#otherCaches) {
      const bytes = (await drives.bytes(drive)) ?? 0;
      if (heldBytes + bytes <= cacheBytesMax && kept.length + this.#caches.size < CACHES_MAX) {
        heldBytes += bytes;
        kept.push(drive);
        continue;
      }
      await drives.destroy(drive);
      await caches.forget(this.#request.owner, drive);
    }
    this.#otherCaches = kept;
    return mountedBytes;
  }

  async #secretDrive(files: Record<string, string>): Promise<string> {
    const folder = await this.#parts.makeFolder();
    try {
      for (const [name, value] of Object.entries(files)) await writeFile(join(folder, name), value, { mode: 0o400 });
      return await this.#drive(folder);
    } finally {
      await removeTree(folder);
    }
  }

  #keep(run: Work, name: string, mountPoints: string[]): Promise<void> {
    return this.#work(run, { name, document: {}, mountPoints });
  }

  async #work(run: Work, kept: Parameters<typeof runStep>[1]): Promise<void> {
    const { driver, building, shortage } = this.#parts;
    const { id, log } = this.#request;
    const whole: StepRun = { env: {}, workDir: "/", user: "", network: false, ...run, uid: `${id}-step` };
    this.#parts.hold(stepBase(whole.uid));
    try {
      const excess = (): Promise<string | null> => this.#excess();
      await runStep(whole, kept, { driver, building, shortage, excess, log }, this.#signal);
    } catch (error) {
      if (
        error instanceof PlatformError &&
        error.status < 500 &&
        !(error instanceof BuildFailed) &&
        !this.#signal.aborted
      )
        throw new BuildFailed(`${run.what}: ${error.message}`);
      throw error;
    }
  }

  #say(text: string, severity: number = SEVERITY.INFO): void {
    this.#parts.say(text, severity);
  }
}

type Work = Pick<StepRun, "image" | "exec" | "what" | "mounts"> &
  Partial<Pick<StepRun, "env" | "workDir" | "user" | "network">>;

async function dockerfileText(folder: string, path: string): Promise<string> {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.length === 0 || names.includes(".."))
    throw new BuildFailed(`'${path.slice(0, 100)}' is not a path of the context.`);
  const file = join(folder, ...names);
  const found = await stat(file).catch(() => null);
  if (!found?.isFile()) throw new BuildFailed(`There is no ${names.join("/").slice(0, 100)} in the archive.`);
  if (found.size > DOCKERFILE_BYTES_MAX)
    throw new BuildFailed(`${names.join("/").slice(0, 100)} has more than ${DOCKERFILE_BYTES_MAX / 1024} KB.`);
  return readFile(file, "utf8");
}
