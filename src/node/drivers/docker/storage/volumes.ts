/**
 * Volumes of the engine, which are both the volumes and the drives of this node: folders that outlive containers. The
 * engine holds no size, so the size of a volume is a wish.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { tarStream } from "../../common/tar-stream.ts";
import { folderBytes } from "../../local/storage/volumes.ts";
import { diskUseSchema, volumeSchema, volumesSchema } from "../engine/answers.ts";
import { type DockerClient, DockerRefusal, tolerating } from "../engine/docker-client.ts";
import type { ContainerMount } from "../workload/container.ts";
import { withHelper } from "../workload/helper.ts";
import { LABEL, ownedBy } from "../workload/record.ts";

export type StoredKind = "volume" | "drive";

export interface VolumeStoreOptions {
  client: DockerClient;
  owner: string;
  /** Id of an image for the containers that fill volumes, which never run. */
  image: string;
  /** Folder with a note for each volume that is being filled. */
  notes: string;
}

export interface StoredVolume {
  sizeMb: number;
  mountpoint: string;
}

const SIZE_LABEL = "berth.size-mb";
/** Where a volume is mounted while it is filled. */
const FILL_AT = "/volume";
const HELPER_LIMITS = { memoryMb: 64, cpus: 1 };

export class VolumeStore {
  readonly #options: VolumeStoreOptions;

  constructor(options: VolumeStoreOptions) {
    this.#options = options;
    mkdirSync(options.notes, { recursive: true, mode: 0o700 });
  }

  /** Name of a volume in the engine. */
  nameOf(kind: StoredKind, id: string): string {
    return `${this.#options.owner}-${kind}-${id}`;
  }

  /** With all files of the folder `from`, or not at all. An existing one is left as it is. */
  async create(kind: StoredKind, id: string, sizeMb: number, from?: string): Promise<void> {
    const { client, owner } = this.#options;
    if (await this.find(kind, id)) return;
    const name = this.nameOf(kind, id);
    const note = join(this.#options.notes, name);
    writeFileSync(note, "");
    try {
      const labels = { [LABEL.node]: owner, [LABEL.role]: kind, [SIZE_LABEL]: String(sizeMb) };
      await client.text("POST", "/volumes/create", { body: { Name: name, Driver: "local", Labels: labels } });
      if (from !== undefined) await this.#fill(name, from);
    } catch (error) {
      await this.#drop(name);
      throw error;
    }
    rmSync(note, { force: true });
  }

  /** Null when there is none, or when it is not filled yet. */
  async find(kind: StoredKind, id: string): Promise<StoredVolume | null> {
    const name = this.nameOf(kind, id);
    if (existsSync(join(this.#options.notes, name))) return null;
    const found = await this.#options.client.find(volumeSchema, `/volumes/${name}`);
    if (found?.Labels?.[LABEL.node] !== this.#options.owner) return null;
    return { sizeMb: Number(found.Labels[SIZE_LABEL] ?? 0), mountpoint: found.Mountpoint };
  }

  /** Bytes of its files, counted where this server sees them and by the engine elsewhere. */
  async bytes(kind: StoredKind, id: string): Promise<number | null> {
    const found = await this.find(kind, id);
    if (!found) return null;
    if (existsSync(found.mountpoint)) return folderBytes(found.mountpoint);
    const { client } = this.#options;
    const use = await client.json(diskUseSchema, "GET", "/system/df", { query: { type: "volume" }, patient: true });
    return use.Volumes?.find(({ Name: name }) => name === this.nameOf(kind, id))?.UsageData?.Size ?? 0;
  }

  async destroy(kind: StoredKind, id: string): Promise<void> {
    if (await this.find(kind, id)) await this.#drop(this.nameOf(kind, id));
  }

  mount(kind: StoredKind, id: string, path: string, readOnly: boolean): ContainerMount {
    const source = this.nameOf(kind, id);
    return { Type: "volume", Source: source, Target: path, ReadOnly: readOnly, VolumeOptions: { NoCopy: true } };
  }

  /** Removes volumes that a server left half filled. */
  async sweep(): Promise<void> {
    for (const name of readdirSync(this.#options.notes)) await this.#drop(name);
  }

  /** All ids of one kind. */
  async list(kind: StoredKind): Promise<string[]> {
    const { client, owner } = this.#options;
    const query = { filters: ownedBy(owner, kind) };
    const { Volumes: found } = await client.json(volumesSchema, "GET", "/volumes", { query });
    return (found ?? []).map(({ Name: name }) => name.slice(this.nameOf(kind, "").length));
  }

  async #fill(name: string, from: string): Promise<void> {
    const { client, owner, image } = this.#options;
    const mounts: ContainerMount[] = [
      { Type: "volume", Source: name, Target: FILL_AT, ReadOnly: false, VolumeOptions: { NoCopy: true } },
    ];
    const cage = { limits: HELPER_LIMITS, mounts };
    await withHelper({ client, owner, image, argv: ["/never-runs"], cage }, async (id) => {
      const tar = tarStream(["--owner=0", "--group=0", "-C", from, "."]);
      await client.text("PUT", `/containers/${id}/archive`, { query: { path: FILL_AT }, tar, patient: true });
    });
  }

  async #drop(name: string): Promise<void> {
    try {
      await tolerating([404], this.#options.client.text("DELETE", `/volumes/${name}`));
    } catch (error) {
      if (!(error instanceof DockerRefusal && error.status === 409)) throw error;
      throw new PlatformError("conflict", "A workload still has it mounted.", { cause: error });
    }
    rmSync(join(this.#options.notes, name), { force: true });
  }
}
