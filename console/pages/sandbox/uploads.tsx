/** Files on their way into a sandbox, each with how far it is. */
import { signal } from "@preact/signals";
import { queries } from "../../api/query.ts";
import { uploadFile } from "../../api/upload.ts";
import type { Workload } from "../../api/workload.ts";
import { bytesOf } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Progress } from "../../ui/progress.tsx";
import { say } from "../../ui/toast.tsx";
import "./sandbox.css";

interface Upload {
  path: string;
  file: File;
  workload: Workload;
  /** From 0 to 1. */
  part: number;
  error: string | null;
}

/** Kept while pages change: an upload goes on when its page is left. */
const uploads = signal<readonly Upload[]>([]);

const change = (path: string, file: File, next: Partial<Upload> | null): void => {
  uploads.value = uploads.value.flatMap((one) => {
    if (one.path !== path || one.file !== file) return [one];
    return next === null ? [] : [{ ...one, ...next }];
  });
};

export async function startUpload(workload: Workload, path: string, file: File): Promise<void> {
  uploads.value = [
    ...uploads.value.filter((one) => one.path !== path || one.workload.name !== workload.name),
    { path, file, workload, part: 0, error: null },
  ];
  try {
    await uploadFile(workload, path, file, (part) => change(path, file, { part }));
    change(path, file, null);
    say(`${path} is uploaded.`);
    await queries.invalidateQueries({ queryKey: ["files", workload.workspace, workload.name] });
  } catch (error) {
    change(path, file, { error: (error as Error).message });
  }
}

export function Uploads({ workload: { workspace, name } }: { workload: Workload }) {
  const shown = uploads.value.filter(({ workload }) => workload.workspace === workspace && workload.name === name);
  if (shown.length === 0) return null;
  return (
    <ul class="uploads" aria-label="Uploads">
      {shown.map(({ path, file, workload, part, error }) => (
        <li key={path}>
          <span class="grow">{file.name}</span>
          <span class="quiet">
            {Math.round(100 * part)} % of {bytesOf(file.size)}
          </span>
          <Progress label={`Upload of ${file.name}`} part={part} isBad={error !== null} />
          {error === null ? null : (
            <>
              <p role="alert">{error}</p>
              <Button onClick={() => void startUpload(workload, path, file)}>Resume</Button>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
