/** The files of a sandbox: folders beside an editor. Files that are dropped on the list are uploaded. */
import "./sandbox.css";
import { useRef, useState } from "preact/hooks";
import { download, readText, removeFile, useFolder, writeText } from "../../api/files.ts";
import { queries, useAction, useAnswer } from "../../api/query.ts";
import type { Workload } from "../../api/workload.ts";
import { bytesOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { saveBlob } from "../../lib/save-text.ts";
import { Button } from "../../ui/button.tsx";
import { DropArea } from "../../ui/drop-area.tsx";
import { Editor } from "../../ui/editor.tsx";
import type { Language } from "../../ui/editor-props.ts";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { startUpload, Uploads } from "./uploads.tsx";

/** Larger texts are downloaded instead: an editor of megabytes helps nobody. */
const SHOWN_BYTES_MAX = 1024 * 1024;

const join = (folder: string, name: string): string => `${folder === "/" ? "" : folder}/${name}`;
const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/")) || "/";

export function FilesTab({ workload }: { workload: Workload }) {
  const folder = queryOf("folder") || "/";
  const file = queryOf("file");
  return (
    <div class="files">
      <FolderList key={folder} workload={workload} folder={folder} file={file} />
      {file === "" ? (
        <Blank title="No file is open" text="Choose one, or drop files on the list to upload them." />
      ) : (
        <FileEditor key={file} workload={workload} path={file} />
      )}
    </div>
  );
}

function FolderList({ workload, folder, file }: { workload: Workload; folder: string; file: string }) {
  const { data, error } = useFolder(workload, folder);
  const picker = useRef<HTMLInputElement>(null);
  const upload = (files: readonly File[]): void => {
    for (const one of files) void startUpload(workload, join(folder, one.name), one);
  };
  return (
    <div class="stack">
      <div class="row">
        <span class="mono grow">{folder}</span>
        <Button onClick={() => picker.current?.click()}>
          <Icon name="up" />
          Upload
        </Button>
        <input
          ref={picker}
          class="hidden-visually"
          type="file"
          multiple
          aria-label="Files to upload"
          tabIndex={-1}
          onChange={(event) => upload([...(event.currentTarget.files ?? [])])}
        />
      </div>
      <Uploads workload={workload} />
      {error ? <Failure error={error} /> : null}
      {data === undefined ? (
        <Loading />
      ) : (
        <DropArea label="Files" class="tree" onDrop={({ files }) => upload([...files])}>
          {folder === "/" ? null : (
            <button type="button" onClick={() => setQuery({ folder: parentOf(folder) })}>
              <Icon name="folder" />
              ..
            </button>
          )}
          {data.subdirectories.map(({ path, name }) => (
            <button type="button" key={path} onClick={() => setQuery({ folder: path })}>
              <Icon name="folder" />
              {name}
            </button>
          ))}
          {data.files.map(({ path, name, size }) => (
            <button type="button" key={path} aria-current={path === file} onClick={() => setQuery({ file: path })}>
              <Icon name="file" />
              {name}
              <span class="size">{size === undefined ? "" : bytesOf(size)}</span>
            </button>
          ))}
        </DropArea>
      )}
    </div>
  );
}

function FileEditor({ workload, path }: { workload: Workload; path: string }) {
  const { data, error } = useAnswer({
    key: ["file", workload.workspace, workload.name, path],
    ask: (signal) => readText(workload, path, signal),
  });
  const [draft, setDraft] = useState<string | null>(null);
  const {
    run,
    busy,
    error: refusal,
  } = useAction(async (text: string) => {
    await writeText(workload, path, text);
    await queries.invalidateQueries({ queryKey: ["file", workload.workspace, workload.name, path] });
    setDraft(null);
    say(`${path} is saved.`);
  });
  const remove = useAction(async () => {
    await removeFile(workload, path);
    setQuery({ file: "" });
    await queries.invalidateQueries({ queryKey: ["files", workload.workspace, workload.name] });
  });
  const isShown = data !== undefined && data.size <= SHOWN_BYTES_MAX && !data.content.includes("\0");
  return (
    <div class="stack">
      <div class="row">
        <span class="mono grow">{path}</span>
        <Button onClick={() => void save(workload, path)}>Download</Button>
        <Button kind="danger" busy={remove.busy} onClick={() => void remove.run(null)}>
          Delete
        </Button>
        <Button
          kind="main"
          busy={busy}
          unable={draft === null ? "Nothing has changed" : null}
          onClick={() => draft !== null && void run(draft)}
        >
          Save
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
      {refusal ? <Failure error={refusal} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data === undefined ? null : isShown ? (
        <Editor
          label={path}
          language={languageOf(path)}
          text={data.content}
          isChanged={draft !== null}
          onInput={setDraft}
        />
      ) : (
        <Blank title="This file is not shown" text="It is large, or not a text. Download it instead." />
      )}
    </div>
  );
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  ...{ ts: "javascript", tsx: "javascript", js: "javascript", mjs: "javascript", jsx: "javascript" },
  ...{ py: "python", md: "markdown", json: "json", yaml: "yaml", yml: "yaml" },
};

const languageOf = (path: string): Language => LANGUAGES[path.split(".").at(-1) ?? ""] ?? "text";

const save = async (workload: Workload, path: string): Promise<void> =>
  saveBlob(
    path.split("/").at(-1) ?? "file",
    new Blob([await download(workload, path)], { type: "application/octet-stream" }),
  );
