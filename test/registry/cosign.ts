/** Signs images of a test in the format of cosign, with keys that the test made. */
import { type KeyObject, sign } from "node:crypto";
import { addImage, digestOf, type FakeRegistry } from "./fake-registry.ts";

export interface SignOptions {
  /** What the statement claims, when not the digest of the image itself. */
  claims?: string;
  /** Changes the signature. */
  spoil?: (signature: Buffer) => Buffer;
}

/** `name`: the image's, `repository:tag`. Returns the name of the tag with the signature. */
export function addSignature(
  registry: FakeRegistry,
  name: string,
  key: KeyObject,
  { claims, spoil = (signature) => signature }: SignOptions = {},
): string {
  const [repository = ""] = name.split(":");
  const digest = registry.tags.get(name) ?? "";
  const statement = Buffer.from(
    JSON.stringify({
      critical: {
        identity: { "docker-reference": `example.test/${repository}` },
        image: { "docker-manifest-digest": claims ?? digest },
        type: "cosign container image signature",
      },
      optional: null,
    }),
  );
  const made = sign(key.asymmetricKeyType === "ed25519" ? null : "sha256", statement, key);
  const annotations = { "dev.cosignproject.cosign/signature": spoil(made).toString("base64") };
  const tag = `${repository}:${digest.replace(":", "-")}.sig`;
  addImage(registry, tag, {
    layers: [statement],
    pack: { mediaType: "application/vnd.dev.cosign.simplesigning.v1+json", bytes: (bytes) => bytes },
    manifest: (manifest) => ({
      ...manifest,
      layers: (manifest.layers as object[]).map((layer) => ({ ...layer, annotations })),
    }),
  });
  if (!registry.blobs.has(digestOf(statement))) throw new Error("the statement was not stored");
  return tag;
}
