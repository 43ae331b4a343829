import { useState } from "preact/hooks";
import { get, Problem, session } from "../api";
import { Notice } from "../parts";

/** Asks for a token and tries it; it stays in this tab. */
export function SignIn({ reason, enter }: { reason: string; enter: () => void }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const given = token.trim();
    if (!given) return setProblem("Paste a token first.");
    // What cannot stand in a header cannot be a token, and must not be sent as one.
    if (!/^[\x21-\x7e]+$/.test(given)) return setProblem("A token has no spaces and no letters with accents.");
    setBusy(true);
    try {
      await get("studies?limit=1", given);
      session.set(given);
      enter();
    } catch (error) {
      const refused = error instanceof Problem && error.status === 401;
      setProblem(refused ? "The service does not accept this token. It may have been revoked." : (error as Error).message);
      setBusy(false);
    }
  }

  return (
    <div class="sign-in card">
      <h1>Sign in</h1>
      <p class="muted">
        The page speaks to the service with an API token. It is kept in this tab only, and forgotten when you sign out or
        close it.
      </p>
      {(problem || reason) && <Notice kind="bad">{problem || reason}</Notice>}
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Token
          <input
            type="password"
            name="token"
            autocomplete="off"
            spellcheck={false}
            value={token}
            aria-invalid={problem ? true : undefined}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Trying …" : "Sign in"}
        </button>
      </form>
      <details>
        <summary>Where do I get one?</summary>
        <p>An administrator makes tokens on the page Tokens. The first one is made where the service runs:</p>
        <pre>surefoot token create --tenant NAME --scope admin</pre>
      </details>
    </div>
  );
}
