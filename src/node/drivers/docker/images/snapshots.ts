/**
 * Snapshots: images of the engine, committed from containers. The container is paused meanwhile. Files of volumes,
 * drives and of the folder shared with the platform are not in them.
 */
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import type { Snapshot, Snapshots } from "../../../capabilities/snapshots.ts";
import type { Serial } from "../../common/serial.ts";
import { checkId } from "../../common/spec-check.ts";
import { createdSchema, type DockerImage, imageSchema, imagesSchema } from "../engine/answers.ts";
import { type DockerClient, tolerating } from "../engine/docker-client.ts";
import type { Fleet } from "../workload/fleet.ts";
import { LABEL, ownedBy } from "../workload/record.ts";
import { encodePath, type ResolvedImage, resolved, SNAPSHOTS } from "./docker-images.ts";

export interface SnapshotsOptions {
  client: DockerClient;
  owner: string;
  fleet: Fleet;
  /** Calls on one workload, one after the other. */
  serial: Serial;
}

const ID_LABEL = "berth.snapshot";
const SOURCE_LABEL = "berth.snapshot-of";
/** The image that the snapshot's workload was started from: a commit keeps the files, and the daemon's own command. */
const sourceSchema = z.object({
  image: z.string(),
  env: z.record(z.string(), z.string()),
  workDir: z.string(),
  argv: z.array(z.string()),
  userSpec: z.string(),
  belowBytes: z.number(),
});

export class DockerSnapshots implements Snapshots {
  readonly #options: SnapshotsOptions;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
  }

  take(uid: string, id: string): Promise<Snapshot> {
    const { client, owner, fleet, serial } = this.#options;
    return serial.run(uid, async () => {
      checkId(id);
      const there = await this.#find(id);
      if (there) return snapshotOf(id, there);
      const { container, record } = await fleet.known(uid);
      const below = await client.json(imageSchema, "GET", `/images/${encodePath(container.Image)}/json`);
      const { env, workDir, argv, userSpec } = withSource(below, record.image);
      const source = { image: record.image, env, workDir, argv, userSpec, belowBytes: below.Size };
      const labels = { [LABEL.node]: owner, [LABEL.role]: "snapshot", [ID_LABEL]: id };
      const body = { Labels: { ...labels, [SOURCE_LABEL]: JSON.stringify(source) } };
      const query = { container: container.Id, repo: this.#repo, tag: id, pause: true };
      const { Id: made } = await client.json(createdSchema, "POST", "/commit", { query, body, patient: true });
      return snapshotOf(id, await client.json(imageSchema, "GET", `/images/${encodePath(made)}/json`));
    });
  }

  async remove(id: string): Promise<void> {
    checkId(id);
    // With force the name goes at once; the files stay while a container stands on them.
    const path = `/images/${encodePath(`${this.#repo}:${id}`)}`;
    await tolerating([404, 409], this.#options.client.text("DELETE", path, { query: { force: true } }));
    await this.sweep();
  }

  async list(): Promise<Snapshot[]> {
    const { client, owner } = this.#options;
    const query = { filters: ownedBy(owner, "snapshot") };
    const all = await client.json(imagesSchema, "GET", "/images/json", { query });
    const snapshots: Snapshot[] = [];
    for (const { Id: image, RepoTags: tags } of all) {
      const id = tags?.find((tag) => tag.startsWith(`${this.#repo}:`))?.slice(this.#repo.length + 1);
      const found = id === undefined ? null : await client.find(imageSchema, `/images/${encodePath(image)}/json`);
      if (id !== undefined && found) snapshots.push(snapshotOf(id, found));
    }
    return snapshots;
  }

  /** The image with the files of the snapshot, and everything else from the image below it. */
  async imageOf(id: string): Promise<ResolvedImage> {
    checkId(id);
    const found = await this.#find(id);
    if (!found) throw new PlatformError("bad_request", `There is no snapshot ${id}.`);
    return withSource(found, id);
  }

  /** Removes the files of removed snapshots that no container stands on any more. */
  async sweep(): Promise<void> {
    const { client, owner } = this.#options;
    const filters = { ...ownedBy(owner, "snapshot"), dangling: ["true"] };
    const left = await client.json(imagesSchema, "GET", "/images/json", { query: { filters } });
    for (const { Id: image } of left) await tolerating([404, 409], client.text("DELETE", `/images/${image}`));
  }

  #find(id: string): Promise<DockerImage | null> {
    return this.#options.client.find(imageSchema, `/images/${encodePath(`${this.#repo}:${id}`)}/json`);
  }

  get #repo(): string {
    return `${this.#options.owner}/${SNAPSHOTS}`;
  }
}

const sourceOf = (image: DockerImage) => {
  const text = image.Config?.Labels?.[SOURCE_LABEL];
  return text === undefined ? null : sourceSchema.parse(JSON.parse(text));
};

/** A snapshot may be of a workload that itself began with a snapshot. */
function withSource(image: DockerImage, name: string): ResolvedImage {
  const { image: source = name, belowBytes: _, ...config } = sourceOf(image) ?? {};
  return { ...resolved(image, source), ...config };
}

const snapshotOf = (id: string, image: DockerImage): Snapshot => {
  const source = sourceOf(image);
  return {
    id,
    image: source?.image ?? "",
    sizeBytes: Math.max(0, image.Size - (source?.belowBytes ?? 0)),
    createdAt: new Date(image.Created ?? 0).toISOString(),
  };
};
