/** CodeMirror with the colours of the console. Loaded by `editor.tsx` only. */
import { HighlightStyle, type LanguageSupport, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { basicSetup, EditorView } from "codemirror";
import { styleNonce } from "../lib/settings.ts";
import type { EditorProps, Language } from "./editor-props.ts";

const LANGUAGES: Readonly<Record<Exclude<Language, "text">, () => Promise<LanguageSupport>>> = {
  yaml: async () => (await import("@codemirror/lang-yaml")).yaml(),
  json: async () => (await import("@codemirror/lang-json")).json(),
  markdown: async () => (await import("@codemirror/lang-markdown")).markdown(),
  python: async () => (await import("@codemirror/lang-python")).python(),
  javascript: async () => (await import("@codemirror/lang-javascript")).javascript({ typescript: true, jsx: true }),
};

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName), tags.keyword], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--busy)" },
  { tag: [tags.comment], color: "var(--quiet)", fontStyle: "italic" },
]);

const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--panel)", color: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft)",
  },
});

export async function mount(parent: HTMLElement, { label, text, language, onInput }: EditorProps) {
  const support = language === "text" ? [] : [await LANGUAGES[language]()];
  let isOwn = false;
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      basicSetup,
      ...support,
      LOOK,
      syntaxHighlighting(COLOURS),
      EditorView.cspNonce.of(styleNonce),
      EditorView.contentAttributes.of({ "aria-label": label }),
      EditorView.lineWrapping,
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !isOwn) onInput(update.state.doc.toString());
      }),
    ],
  });
  return {
    setText(next: string): void {
      if (next === view.state.doc.toString()) return;
      isOwn = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
      isOwn = false;
    },
    destroy: () => view.destroy(),
  };
}
