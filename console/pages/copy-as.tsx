/** The request of this page for other tools. */
import { useState } from "preact/hooks";
import { settings } from "../lib/settings.ts";
import { Button } from "../ui/button.tsx";
import { Code } from "../ui/code.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { type Asked, linesOf } from "../views/lines.ts";

export function CopyAs({ asked }: { asked: Asked }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="bare" label="Copy as…" onClick={() => setOpen(true)}>
        <Icon name="code" />
        <span class="long">Copy as…</span>
      </Button>
      {isOpen ? (
        <Dialog title="The same from elsewhere" onClose={() => setOpen(false)}>
          <div class="stack">
            {linesOf(settings.publicUrl, asked).map(({ title, text }) => (
              <div key={title} class="stack">
                <h3>{title}</h3>
                <Code text={text} noun={title} />
              </div>
            ))}
          </div>
        </Dialog>
      ) : null}
    </>
  );
}
