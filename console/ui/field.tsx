import "./field.css";
import { useId } from "preact/hooks";

export interface FieldProps {
  label: string;
  value: string;
  onInput(value: string): void;
  hint?: string | undefined;
  /** What is wrong with the value. */
  wrong?: string | null;
  /** More than one makes it an area. */
  lines?: number;
  type?: "text" | "number";
  placeholder?: string;
  isRequired?: boolean;
}

export function Field({ label, value, onInput, hint, wrong = null, lines = 1, type = "text", ...more }: FieldProps) {
  const id = useId();
  const common = {
    id,
    class: "input",
    value,
    placeholder: more.placeholder,
    required: more.isRequired,
    spellcheck: false,
    autocomplete: "off",
    "aria-invalid": wrong !== null,
    "aria-describedby": hint === undefined && wrong === null ? undefined : `${id}-hint`,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  } as const;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {lines > 1 ? (
        <textarea {...common} rows={lines} />
      ) : type === "number" ? (
        <input {...common} type="number" />
      ) : (
        <input {...common} type="text" />
      )}
      {hint === undefined && wrong === null ? null : (
        <div id={`${id}-hint`}>
          {wrong === null ? null : <p class="wrong">{wrong}</p>}
          {hint === undefined ? null : <p class="hint">{hint}</p>}
        </div>
      )}
    </div>
  );
}

export interface ChoiceProps {
  label: string;
  value: string;
  choices: readonly string[];
  onInput(value: string): void;
  hint?: string | undefined;
  /** The text of no choice; absent = one must be chosen. */
  none?: string;
  /** The text of a choice, where it differs from its value. */
  shown?(choice: string): string;
}

export function Choice({ label, value, choices, onInput, hint, none, shown = String }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} class="input" value={value} onChange={(event) => onInput(event.currentTarget.value)}>
        {none === undefined ? null : <option value="">{none}</option>}
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {shown(choice)}
          </option>
        ))}
      </select>
      {hint === undefined ? null : <p class="hint">{hint}</p>}
    </div>
  );
}
