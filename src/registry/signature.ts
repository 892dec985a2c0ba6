/**
 * Signatures of images, as cosign keeps them: the tag `sha256-….sig` of the same repository leads to a manifest whose
 * layers are statements about a digest, each with its signature in an annotation.
 */
import { createHash, type KeyObject, verify } from "node:crypto";
import { z } from "zod";
import { descriptor, MANIFEST_BYTES_MAX, MANIFESTS } from "./manifest-shape.ts";
import { broken, RegistryProblem } from "./problem.ts";
import type { Source } from "./repository.ts";
import { readBytes, readJson } from "./transport.ts";

export interface ImageSignature {
  /** What is signed: JSON that names the digest of a manifest. */
  statement: Buffer;
  signature: Buffer;
}

const ANNOTATION = "dev.cosignproject.cosign/signature";
const STATEMENT_BYTES_MAX = 64 * 1024;
/** Signatures of one image that are looked at. */
const SIGNATURES_MAX = 50;

const signatures = z.object({
  layers: z.array(descriptor.extend({ annotations: z.record(z.string(), z.string()).optional() })),
});
const statementShape = z.object({
  critical: z.object({
    type: z.literal("cosign container image signature"),
    image: z.object({ "docker-manifest-digest": z.string() }),
  }),
});

/** `digest`: of a manifest or an index. Empty when it is not signed. */
export async function fetchSignatures(source: Source, digest: string, signal: AbortSignal): Promise<ImageSignature[]> {
  const headers = { accept: MANIFESTS.join(", ") };
  let document: unknown;
  try {
    const received = await source.send(`manifests/${digest.replace(":", "-")}.sig`, { headers, signal });
    document = await readJson(received, MANIFEST_BYTES_MAX, "the list of its signatures");
  } catch (error) {
    if (error instanceof RegistryProblem && error.reason === "not_found") return [];
    throw error;
  }
  const { data, error } = signatures.safeParse(document);
  if (!data) throw broken("the list of its signatures is not valid", error);
  const found: ImageSignature[] = [];
  for (const { digest: of, annotations } of data.layers.slice(0, SIGNATURES_MAX)) {
    const text = annotations?.[ANNOTATION];
    if (text === undefined) continue;
    const received = await source.send(`blobs/${of}`, { signal });
    const statement = await readBytes(received, STATEMENT_BYTES_MAX, "a signature");
    if (`sha256:${createHash("sha256").update(statement).digest("hex")}` !== of)
      throw broken("a signature has another digest than its manifest says");
    found.push({ statement, signature: Buffer.from(text, "base64") });
  }
  return found;
}

/** Whether the key signed a statement about this very digest. */
export function isSignedBy({ statement, signature }: ImageSignature, digest: string, key: KeyObject): boolean {
  let document: unknown;
  try {
    document = JSON.parse(statement.toString("utf8"));
  } catch {
    return false;
  }
  const { data } = statementShape.safeParse(document);
  if (data?.critical.image["docker-manifest-digest"] !== digest) return false;
  const hash = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  return verify(hash, statement, key, signature);
}
