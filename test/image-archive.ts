/** Images as files, in all shapes, with whatever a hostile one would hold. */
import { createHash } from "node:crypto";

export interface Entry {
  path: string;
  type?: string;
  link?: string;
  content?: string | Buffer;
  mode?: number;
}

/** Writes what no tar tool would agree to write. */
export function tar(entries: Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, type = "0", link = "", content = "", mode = 0o644 }) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(path, 0);
    header.write(mode.toString(8).padStart(7, "0"), 100);
    header.write("0000000\x000000000\0", 108);
    header.write(body.length.toString(8).padStart(11, "0"), 124);
    header.write("00000000000", 136);
    header.write(" ".repeat(8), 148);
    header.write(type, 156);
    header.write(link, 157);
    header.write("ustar\x0000", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** What `docker save` writes. `described`: the layers that the configuration names, where they are not the layers. */
export function dockerSave(layers: Buffer[], config: object = {}, more: object = {}, described = layers): Buffer {
  const description = JSON.stringify({
    config,
    ...more,
    rootfs: { diff_ids: described.map((layer) => `sha256:${sha256(layer)}`) },
  });
  const manifest = [{ Config: "config.json", Layers: layers.map((_, index) => `${index}/layer.tar`) }];
  return tar([
    { path: "config.json", content: description },
    { path: "manifest.json", content: JSON.stringify(manifest) },
    ...layers.map((content, index) => ({ path: `${index}/layer.tar`, content })),
  ]);
}

/** An OCI image layout: an index that leads to one index per architecture. */
export function ociArchive(layers: Buffer[], config: object = {}): Buffer {
  const blobs = new Map<string, Buffer>();
  const blob = (content: Buffer): { digest: string } => {
    blobs.set(`blobs/sha256/${sha256(content)}`, content);
    return { digest: `sha256:${sha256(content)}` };
  };
  const json = (value: object): { digest: string } => blob(Buffer.from(JSON.stringify(value)));
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const image = { config: json({ config, rootfs: {} }), layers: layers.map(blob) };
  const manifests = [
    { ...json({}), platform: { architecture: "s390x" } },
    { ...json(image), platform: { architecture } },
  ];
  const index = { path: "index.json", content: JSON.stringify({ manifests: [json({ manifests })] }) };
  return tar([index, ...[...blobs].map(([path, content]) => ({ path, content }))]);
}
