/** Volumes, which outlive sandboxes, and drives, which many sandboxes share. */
import { type Berth, defaultBerth, type WithBerth } from "./berth.ts";
import type { CallOptions } from "./core/call.ts";
import type { DriveRecord, VolumeRecord } from "./generated/types.ts";

export interface VolumeOptions extends CallOptions, WithBerth {
  name: string;
  sizeMb?: number | undefined;
  /** `name` or `name:version` of a volume template whose files it starts with. */
  template?: string | undefined;
}

export interface DriveOptions extends CallOptions, WithBerth {
  name: string;
  labels?: Readonly<Record<string, string>> | undefined;
}

type ReadOptions = CallOptions & WithBerth;

export class Volume {
  readonly name: string;
  readonly record: VolumeRecord;
  readonly #berth: Berth;

  constructor(berth: Berth, record: VolumeRecord) {
    this.#berth = berth;
    this.record = record;
    this.name = record.metadata.name;
  }

  static async create({ berth = defaultBerth(), name, sizeMb, template, ...options }: VolumeOptions): Promise<Volume> {
    const spec = { ...(sizeMb === undefined ? {} : { size: sizeMb }), ...(template === undefined ? {} : { template }) };
    return new Volume(berth, await berth.api.volumeCreate({ ...options, body: { metadata: { name }, spec } }));
  }

  static async get(name: string, { berth = defaultBerth(), ...options }: ReadOptions = {}): Promise<Volume> {
    return new Volume(berth, await berth.api.volumeGet({ ...options, params: { volumeName: name } }));
  }

  static async *list({ berth = defaultBerth(), ...options }: ReadOptions = {}): AsyncGenerator<Volume, void> {
    for await (const record of berth.api.volumeList(options)) yield new Volume(berth, record);
  }

  async delete(options: CallOptions = {}): Promise<void> {
    await this.#berth.api.volumeDelete({ ...options, params: { volumeName: this.name } });
  }
}

/** Mounted with `box.drives.mount(drive, "/mnt/shared")`. */
export class Drive {
  readonly name: string;
  readonly record: DriveRecord;
  readonly #berth: Berth;

  constructor(berth: Berth, record: DriveRecord) {
    this.#berth = berth;
    this.record = record;
    this.name = record.metadata.name;
  }

  static async create({ berth = defaultBerth(), name, labels, ...options }: DriveOptions): Promise<Drive> {
    const metadata = { name, ...(labels === undefined ? {} : { labels: { ...labels } }) };
    return new Drive(berth, await berth.api.driveCreate({ ...options, body: { metadata, spec: {} } }));
  }

  static async get(name: string, { berth = defaultBerth(), ...options }: ReadOptions = {}): Promise<Drive> {
    return new Drive(berth, await berth.api.driveGet({ ...options, params: { driveName: name } }));
  }

  static async *list({ berth = defaultBerth(), ...options }: ReadOptions = {}): AsyncGenerator<Drive, void> {
    for await (const record of berth.api.driveList(options)) yield new Drive(berth, record);
  }

  async delete(options: CallOptions = {}): Promise<void> {
    await this.#berth.api.driveDelete({ ...options, params: { driveName: this.name } });
  }
}
