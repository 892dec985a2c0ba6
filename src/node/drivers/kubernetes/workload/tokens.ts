/**
 * Tokens of workloads, derived from one key of the installation, which lies in a Secret that all servers read. The two
 * directions have different tokens, and every life of a workload has its own.
 */
import { createHmac, randomBytes } from "node:crypto";
import { PlatformError } from "../../../../contract/errors.ts";
import type { KubeClient } from "../client/kube-client.ts";
import { keySchema } from "../objects/answers.ts";
import { keyName, labelsOf } from "../objects/names.ts";
import type { WorkloadRecord } from "./record.ts";

const KEY_BYTES = 32;

export type Door = "platform" | "egress";

export class Tokens {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** Of the gate in the workload's pod. */
  gateOf({ uid, id, born = uid }: Pick<WorkloadRecord, "uid" | "id" | "born">): string {
    return this.#derive("gate", born, id);
  }

  /** Of a door that the workload calls. A workload without the way out does not get it with the token of the other. */
  doorOf(door: Door, { uid, id }: Pick<WorkloadRecord, "uid" | "id">): string {
    return this.#derive("door", door, uid, id);
  }

  #derive(...words: string[]): string {
    return createHmac("sha256", this.#key).update(words.join("\n")).digest("hex");
  }
}

/** The key of the installation, made by the first server that asks for it. */
export async function openTokens(client: KubeClient, namespace: string, instance: string): Promise<Tokens> {
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const name = keyName(instance);
  const known = await client.find(keySchema, `${path}/${name}`);
  if (known) return tokensOf(known.data.key);
  const body = {
    apiVersion: "v1",
    kind: "Secret",
    immutable: true,
    metadata: { name, labels: labelsOf(instance, "key") },
    data: { key: randomBytes(KEY_BYTES).toString("base64") },
  };
  const { object } = await client.create(keySchema, path, body);
  return tokensOf(object.data.key);
}

function tokensOf(text: string): Tokens {
  const key = Buffer.from(text, "base64");
  if (key.length < KEY_BYTES)
    throw new PlatformError("unavailable", "The Secret with the key of workloads is damaged.");
  return new Tokens(key);
}

/** One word for the first line of a connection to a door. */
export const doorPurpose = (door: Door, { uid, id }: Pick<WorkloadRecord, "uid" | "id">): string =>
  `${door}:${uid}:${id}`;

export interface DoorCaller {
  door: Door;
  uid: string;
  id: string;
}

/** Null for any other word. */
export function doorIn(purpose: string): DoorCaller | null {
  const match = /^(platform|egress):([A-Za-z0-9][A-Za-z0-9._-]{0,127}):([0-9a-f]{12})$/.exec(purpose);
  if (!match) return null;
  const [, door, uid = "", id = ""] = match;
  return { door: door === "platform" ? "platform" : "egress", uid, id };
}
