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
  ".cm-tooltip": {
    maxWidth: "420px",
    border: "1px solid var(--line)",
    borderRadius: "7px",
    backgroundColor: "var(--panel)",
    color: "var(--text)",
    boxShadow: "var(--shadow)",
  },
  ".cm-tooltip .yaml-hover, .cm-completionInfo": { padding: "6px 10px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent-soft)",
    color: "var(--text)",
  },
  ".cm-completionDetail": { color: "var(--quiet)" },
});

/**
 * A browser that edits the document itself keeps the look of a selection that is typed over with a `style` attribute,
 * which the policy of the page refuses. The editor therefore replaces selections itself.
 */
const TYPED_OVER = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to } = view.state.selection.main;
    const { data, inputType, isComposing } = event;
    if (inputType !== "insertText" || data === null || isComposing || from === to) return false;
    const typed = () => view.state.update(view.state.replaceSelection(data), { userEvent: "input.type" });
    const isHandled = view.state.facet(EditorView.inputHandler).some((one) => one(view, from, to, data, typed));
    if (!isHandled) view.dispatch(typed());
    event.preventDefault();
    return true;
  },
});

async function helpOf(schema: unknown, [support]: readonly LanguageSupport[]) {
  const { completions, hover, marks } = await import("./yaml-help.ts");
  const completing = support ? [support.language.data.of({ autocomplete: completions(schema) })] : [];
  return [...completing, hover(schema), marks(schema)];
}

export async function mount(parent: HTMLElement, { label, text, language, schema, onInput }: EditorProps) {
  const support = language === "text" ? [] : [await LANGUAGES[language]()];
  const help = schema === undefined ? [] : await helpOf(schema, support);
  let isOwn = false;
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      basicSetup,
      ...support,
      ...help,
      LOOK,
      TYPED_OVER,
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
