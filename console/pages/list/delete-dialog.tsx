/** Asks before anything is deleted, and says what could not be. */
import { useAction } from "../../api/query.ts";
import { countOf } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";

export interface DeleteDialogProps {
  names: readonly string[];
  remove(name: string): Promise<void>;
  onClose(isDone: boolean): void;
}

const NAMED_MAX = 8;

export function DeleteDialog({ names, remove, onClose }: DeleteDialogProps) {
  const { run, busy, error } = useAction(async () => {
    for (const name of names) await remove(name);
    say(
      names.length === 1 ? `${names[0]} is being deleted.` : `${countOf(names.length, "resource")} are being deleted.`,
    );
    onClose(true);
  });
  return (
    <Dialog
      title={names.length === 1 ? `Delete ${names[0]}?` : `Delete ${countOf(names.length, "resource")}?`}
      onClose={() => onClose(false)}
      foot={
        <>
          <Button onClick={() => onClose(false)}>Keep</Button>
          <Button kind="danger" busy={busy} onClick={() => void run(null)}>
            Delete
          </Button>
        </>
      }
    >
      <div class="stack">
        <p>What is deleted cannot be brought back.</p>
        {names.length > 1 ? (
          <p class="mono">
            {names.slice(0, NAMED_MAX).join(", ")}
            {names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ""}
          </p>
        ) : null}
        {error ? <Failure error={error} /> : null}
      </div>
    </Dialog>
  );
}
