import { useRef, useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { deployCode } from "../../api/templates.ts";
import { pathsOf, readAll } from "../../lib/dropped.ts";
import { bytesOf, countOf } from "../../lib/format.ts";
import { go } from "../../lib/location.ts";
import { titleOf } from "../../lib/titles.ts";
import { zipOf } from "../../lib/zip.ts";
import { Button } from "../../ui/button.tsx";
import { DropArea } from "../../ui/drop-area.tsx";
import { Card } from "../../ui/facts.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure } from "../../ui/notice.tsx";
import { places, top } from "../../views/places.ts";

const KINDS = ["agent", "function", "job", "application"];
/** An archive is made in memory. Larger projects are deployed from the command line. */
const BYTES_MAX = 100 * 2 ** 20;

interface Picked {
  title: string;
  bytes: number;
  archive(): Promise<Blob>;
}

/** Deploys a folder or a zip archive of this person's machine. */
export function OwnCode({ workspace }: { workspace: string }) {
  const [kind, setKind] = useState("agent");
  const [name, setName] = useState("");
  const [picked, setPicked] = useState<Picked | null>(null);
  const folder = useRef<HTMLInputElement>(null);
  const archive = useRef<HTMLInputElement>(null);
  const refusal = useRefusal(workspace, `${kind}Create`);
  const { run, busy, error } = useAction(async (code: Picked) => {
    await deployCode(workspace, top(kind), { metadata: { name }, spec: {} }, await code.archive());
    go(`${places.item(workspace, top(kind), name)}?tab=logs`);
  });
  const pick = (next: Picked | null): void => {
    setPicked(next);
    if (next !== null && name === "") setName(nameFrom(next.title));
  };
  const missing = picked === null ? "Choose a folder or a zip file first" : name === "" ? "A name is missing" : null;
  const large =
    picked !== null && picked.bytes > BYTES_MAX ? `More than ${bytesOf(BYTES_MAX)}: use berth deploy` : null;
  return (
    <Card title="Your own code">
      <DropArea label="Your own code" class="own-code stack" onDrop={(files) => void dropped(files).then(pick)}>
        <div class="row">
          <Button onClick={() => folder.current?.click()}>Choose a folder</Button>
          <Button onClick={() => archive.current?.click()}>Choose a zip file</Button>
          <span class="quiet">
            {picked === null ? "or drop one here" : `${picked.title}, ${bytesOf(picked.bytes)}`}
          </span>
        </div>
        <input
          ref={(element) => {
            folder.current = element;
            element?.setAttribute("webkitdirectory", "");
          }}
          class="hidden-visually"
          type="file"
          tabIndex={-1}
          aria-label="Folder to deploy"
          onChange={({ currentTarget: { files } }) =>
            pick(fromFolder([...(files ?? [])].map((file) => ({ path: file.webkitRelativePath, file }))))
          }
        />
        <input
          ref={archive}
          class="hidden-visually"
          type="file"
          accept=".zip"
          tabIndex={-1}
          aria-label="Zip file to deploy"
          onChange={({ currentTarget: { files } }) => pick(fromZip(files?.[0]))}
        />
        <div class="own-code-line">
          <Choice label="As" value={kind} choices={KINDS} shown={titleOf} onInput={setKind} />
          <Field label="Name" value={name} onInput={setName} />
          <Button
            kind="main"
            busy={busy}
            unable={refusal ?? missing ?? large}
            onClick={() => picked !== null && void run(picked)}
          >
            Deploy
          </Button>
        </div>
        {error ? <Failure error={error} /> : null}
      </DropArea>
    </Card>
  );
}

const fromZip = (file: File | undefined): Picked | null =>
  file === undefined ? null : { title: file.name, bytes: file.size, archive: async () => file };

function fromFolder(found: readonly { path: string; file: File }[]): Picked | null {
  const files = pathsOf(found);
  if (files.length === 0) return null;
  const title = found[0]?.path.split("/")[0] ?? "";
  return {
    title: `${title}, ${countOf(files.length, "file")}`,
    bytes: files.reduce((sum, { file }) => sum + file.size, 0),
    archive: async () => zipOf(await readAll(files)),
  };
}

async function dropped(data: DataTransfer): Promise<Picked | null> {
  const entry = data.items[0]?.webkitGetAsEntry() ?? null;
  if (entry === null) return null;
  return entry.isDirectory ? fromFolder(await below(entry, entry.name)) : fromZip(data.files[0]);
}

/** Files below a dropped folder, with their paths. */
async function below(entry: FileSystemEntry, path: string): Promise<{ path: string; file: File }[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const inside: FileSystemEntry[] = [];
  for (;;) {
    // Each call gives some of the entries, and an empty list at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break;
    inside.push(...some);
  }
  return (await Promise.all(inside.map((one) => below(one, `${path}/${one.name}`)))).flat();
}

/** `My Agent.zip` → `my-agent`. */
const nameFrom = (title: string): string =>
  title
    .replace(/(\.zip|,.*)$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
