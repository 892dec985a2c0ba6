export type Language = "yaml" | "json" | "markdown" | "python" | "javascript" | "text";

export interface EditorProps {
  label: string;
  text: string;
  language: Language;
  onInput(text: string): void;
}
