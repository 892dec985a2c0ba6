/** A text editor; the program behind it is loaded when the first one is shown. */
import "./editor.css";
import { useEffect, useRef } from "preact/hooks";
import type { EditorProps } from "./editor-props.ts";

interface Mounted {
  setText(text: string): void;
  destroy(): void;
}

export function Editor({ label, text, language, schema, isChanged, onInput }: EditorProps & { isChanged: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const mounted = useRef<Mounted | null>(null);
  const latest = useRef({ text, onInput });
  latest.current = { text, onInput };
  useEffect(() => {
    let isGone = false;
    void import("./code-mirror.ts").then(async ({ mount }) => {
      if (isGone || !place.current) return;
      mounted.current = await mount(place.current, {
        label,
        language,
        schema,
        text: latest.current.text,
        onInput: (next) => latest.current.onInput(next),
      });
    });
    return () => {
      isGone = true;
      mounted.current?.destroy();
      mounted.current = null;
    };
  }, [label, language, schema]);
  // While a person types, the text is the editor's own: an older one that comes back late must not undo a letter.
  useEffect(() => {
    if (!isChanged) mounted.current?.setText(text);
  }, [text, isChanged]);
  return <div class="editor" ref={place} />;
}
