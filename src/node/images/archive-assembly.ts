/** Puts an image of a registry together as a tar, for drivers that take in images as a whole. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import type { RemoteImage } from "../../registry/manifest.ts";
import type { Assembly, Image, Images } from "../capabilities/images.ts";
import type { CallOptions } from "../dial/endpoint.ts";

/** `tarPath`: where the tar is written; it is removed again. */
export function archiveAssembly(images: Images, image: RemoteImage, tarPath: string): Assembly {
  const files: string[] = [];
  return {
    present: 0,
    async add(file) {
      files.push(file);
    },
    async finish(name: string, options: CallOptions = {}): Promise<Image> {
      await writeArchive(image, files, name, tarPath);
      return images.load(tarPath, name, options);
    },
    async [Symbol.asyncDispose]() {
      await rm(tarPath, { force: true });
    },
  };
}

/** An OCI image layout, with the manifest that `docker load` of older versions reads. */
async function writeArchive(
  image: RemoteImage,
  files: readonly string[],
  name: string,
  tarPath: string,
): Promise<void> {
  const { digest, manifest, config, layers } = image;
  const { mediaType } = JSON.parse(manifest.toString("utf8")) as { mediaType?: string };
  const configName = blobName(`sha256:${createHash("sha256").update(config).digest("hex")}`);
  const index = {
    schemaVersion: 2,
    manifests: [{ mediaType: mediaType ?? OCI_MANIFEST, digest, size: manifest.length }],
  };
  const saved = [{ Config: configName, RepoTags: [name], Layers: layers.map((layer) => blobName(layer.digest)) }];
  const documents: [string, Buffer][] = [
    ["oci-layout", Buffer.from('{"imageLayoutVersion":"1.0.0"}')],
    ["index.json", Buffer.from(JSON.stringify(index))],
    ["manifest.json", Buffer.from(JSON.stringify(saved))],
    [blobName(digest), manifest],
    [configName, config],
  ];
  const written = new Set<string>();
  const tar = await open(tarPath, "w");
  try {
    for (const [path, bytes] of documents)
      await tar.write(Buffer.concat([header(path, bytes.length), bytes, padding(bytes.length)]));
    for (const [at, { digest: of, sizeBytes }] of layers.entries()) {
      if (written.has(of)) continue;
      written.add(of);
      await tar.write(header(blobName(of), sizeBytes));
      for await (const chunk of createReadStream(files[at] ?? "")) await tar.write(chunk as Buffer);
      await tar.write(padding(sizeBytes));
    }
    await tar.write(Buffer.alloc(2 * BLOCK));
  } finally {
    await tar.close();
  }
}

const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const BLOCK = 512;

const blobName = (digest: string): string => `blobs/${digest.replace(":", "/")}`;

const padding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);

/** The header of a plain file in a tar; sizes above 8 GB are written in binary. */
function header(path: string, size: number): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  bytes.write(path, 0);
  bytes.write("0000644\x000000000\x000000000\0", 100);
  if (size < 8 ** 11) bytes.write(size.toString(8).padStart(11, "0"), 124);
  else {
    bytes.writeUInt8(0x80, 124);
    bytes.writeBigUInt64BE(BigInt(size), 128);
  }
  bytes.write("00000000000", 136);
  bytes.write(" ".repeat(8), 148);
  bytes.write("0", 156);
  bytes.write("ustar\x0000", 257);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return bytes;
}
