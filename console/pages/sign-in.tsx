import "./sign-in.css";
import { LinkButton } from "../ui/button.tsx";
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
