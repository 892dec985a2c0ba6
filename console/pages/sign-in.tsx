import "./sign-in.css";
import { answerOtherLink, otherLink } from "../api/session.ts";
import { Button, LinkButton } from "../ui/button.tsx";
import { Code } from "../ui/code.tsx";

/** Signing in happens on a page of the server, which sends the person back. */
export function SignIn({ isLinkGone }: { isLinkGone: boolean }) {
  return (
    <div class="sign-in">
      <main>
        <h1>Berth</h1>
        {isLinkGone ? (
          <p role="alert">This link was used already, or is older than 30 minutes. Make another one, or sign in.</p>
        ) : (
          <p>This browser is not signed in.</p>
        )}
        <LinkButton kind="main" href="/console/sign-in">
          Sign in
        </LinkButton>
        <p class="quiet">Or, at a terminal that knows the server, make a link that opens this page signed in:</p>
        <Code text="berth open" noun="The command" />
      </main>
    </div>
  );
}

/** Asks before a link makes this browser somebody else's. */
export function OtherLink() {
  return (
    <div class="sign-in">
      <main>
        <h1>Another person's link</h1>
        <p role="alert">{otherLink.value?.text}</p>
        <p class="quiet">Use the link only when you asked for it: what you do afterwards happens in that account.</p>
        <Button kind="main" onClick={() => void answerOtherLink(false)}>
          Stay signed in
        </Button>
        <Button onClick={() => void answerOtherLink(true)}>Use the link</Button>
      </main>
    </div>
  );
}
