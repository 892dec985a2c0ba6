/** The form fields for a new password, and the messages for one that is not accepted. */
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../contract/password-length.ts";
import { EMAIL_LENGTH_MAX } from "../sign-in.ts";
import { field } from "./layout.ts";

/** An invalid form field and the message about it. */
export interface Wrong {
  field: string;
  text: string;
}

/** `email` is included for password managers, which store a password by it, and for the person to see. */
export const newPasswordFields = (email: string, wrong: Wrong | null, before = ""): string =>
  `${field({
    ...{ name: "email", label: "Email", type: "email", autocomplete: "username", maxLength: EMAIL_LENGTH_MAX },
    ...{ value: email, isReadOnly: true },
  })}${before}${passwordField({
    ...{ name: "password", label: "New password", autocomplete: "new-password", wrong, isFirst: before === "" },
    hint: `At least ${PASSWORD_LENGTH_MIN} characters. A few words in a row are good.`,
  })}${passwordField({ name: "again", label: "The same again", autocomplete: "new-password", wrong })}`;

export const passwordField = ({
  wrong,
  ...about
}: {
  name: string;
  label: string;
  autocomplete: "new-password" | "current-password";
  wrong: Wrong | null;
  hint?: string;
  isFirst?: boolean;
}): string =>
  field({
    ...about,
    type: "password",
    maxLength: PASSWORD_LENGTH_MAX,
    isWrong: wrong?.field === about.name,
    isFirst: wrong === null ? (about.isFirst ?? false) : wrong.field === about.name,
  });

/** Returns null when the password is acceptable. */
export function newPasswordProblem(form: URLSearchParams): Wrong | null {
  const password = form.get("password") ?? "";
  if (password.length < PASSWORD_LENGTH_MIN)
    return { field: "password", text: `A password has at least ${PASSWORD_LENGTH_MIN} characters.` };
  if (password.length > PASSWORD_LENGTH_MAX)
    return { field: "password", text: `A password has at most ${PASSWORD_LENGTH_MAX} characters.` };
  return form.get("again") === password ? null : { field: "again", text: "The two passwords are not the same." };
}
