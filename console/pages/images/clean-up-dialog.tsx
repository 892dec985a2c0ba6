import { useAction, useAnswer } from "../../api/query.ts";
import { countOf } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";

interface Plan {
  deleted: number;
  images: readonly string[];
}

export interface CleanUpDialogProps {
  plan(): Promise<Plan>;
  run(): Promise<Plan>;
  onClose(): void;
}

/** Names the images that nothing uses before any of them is deleted. */
export function CleanUpDialog({ plan, run, onClose }: CleanUpDialogProps) {
  const { data, error } = useAnswer({ key: ["clean-up"], ask: plan });
  const remove = useAction(async () => {
    const { deleted } = await run();
    say(`${countOf(deleted, "image")} deleted.`);
    onClose();
  });
  const failure = error ?? remove.error;
  return (
    <Dialog
      title="Delete unused images"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Keep them</Button>
          <Button
            kind="danger"
            busy={remove.busy}
            unable={data?.deleted === 0 ? "Every image is used" : null}
            onClick={() => void remove.run(null)}
          >
            Delete
          </Button>
        </>
      }
    >
      <div class="stack">
        {data === undefined && !error ? <Loading /> : null}
        {data?.deleted === 0 ? <p>Every image is used by a workload or shared with another workspace.</p> : null}
        {data?.deleted ? <p>No workload uses these, and they are shared with nobody:</p> : null}
        <ul class="mono">
          {data?.images.map((name) => (
            <li key={name}>{name}</li>
          ))}
        </ul>
        {failure ? <Failure error={failure} /> : null}
      </div>
    </Dialog>
  );
}
