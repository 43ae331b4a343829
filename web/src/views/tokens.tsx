import { useState } from "preact/hooks";
import { get, items, post, Problem, remove, type Token } from "../api";
import { useLoad } from "../live";
import { Badge, Confirm, Copy, Heading, Loading, Notice, Trouble, When } from "../parts";

const SCOPES = [
  ["write", "write: make studies, ask and tell"],
  ["read", "read: look only"],
  ["admin", "admin: also make and revoke tokens"],
] as const;

/** Tokens of the tenant, for administrators. */
export function Tokens() {
  const { data, problem, reload } = useLoad(async () => items<Token>(await get("tokens")));
  const [made, setMade] = useState<Token | null>(null);
  const [failure, setFailure] = useState<Problem | null>(null);

  async function revoke(token: Token) {
    try {
      await remove(`tokens/${encodeURIComponent(token.id)}`);
      setFailure(null);
    } catch (error) {
      setFailure(error as Problem);
    }
    reload();
  }

  if (problem?.status === 403) {
    return (
      <>
        <Heading>Tokens</Heading>
        <Notice>Only a token of scope admin can see and make tokens. Sign in with one.</Notice>
      </>
    );
  }
  return (
    <>
      <Heading>Tokens</Heading>
      {problem && <Trouble problem={problem} again={reload} />}
      {failure && <Trouble problem={failure} />}
      <Make
        made={(token) => {
          setMade(token);
          reload();
        }}
      />
      {made?.token && (
        <div class="card pad made" role="region" aria-label="The new token">
          <p>
            <strong>{made.name}</strong> is made. Copy it now: the service keeps only its hash and cannot show it again.
          </p>
          <div class="bar">
            <input class="secret" readOnly value={made.token} aria-label="The new token" onFocus={(event) => event.currentTarget.select()} />
            <Copy text={made.token} />
            <button type="button" class="quiet" onClick={() => setMade(null)}>
              Done
            </button>
          </div>
        </div>
      )}
      {!data && !problem && <Loading what="tokens" />}
      {data && (
        <div class="card flush">
          <table class="stack">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Scope</th>
                <th scope="col">State</th>
                <th scope="col">Made</th>
                <th scope="col"><span class="visually-hidden">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              {data.map((token) => (
                <tr key={token.id} class={token.revoked ? "cancelled" : ""}>
                  <th scope="row">{token.name || "(without a name)"}</th>
                  <td data-label="Scope">{token.scope}</td>
                  <td data-label="State">
                    <Badge kind={token.revoked ? "revoked" : "open"}>{token.revoked ? "revoked" : "valid"}</Badge>
                  </td>
                  <td data-label="Made"><When at={token.created} /></td>
                  <td class="actions">
                    {!token.revoked && <Confirm label="Revoke" name={token.name} question="Whoever uses it is locked out." act={() => void revoke(token)} />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Make({ made }: { made: (token: Token) => void }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState("write");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    if (!name.trim()) return setProblem("Give the token a name: who or what will use it.");
    setBusy(true);
    try {
      made(await post<Token>("tokens", { name: name.trim(), scope }));
      setName("");
      setProblem("");
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  }

  return (
    <form class="card pad" onSubmit={(event) => void submit(event)} aria-label="Make a token" noValidate>
      <div class="fields">
        <label>
          Name of the new token
          <input name="name" maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          What it may do
          <select name="scope" value={scope} onChange={(event) => setScope(event.currentTarget.value)}>
            {SCOPES.map(([value, words]) => (
              <option value={value}>{words}</option>
            ))}
          </select>
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Make the token
        </button>
      </div>
      {problem && <Notice kind="bad">{problem}</Notice>}
    </form>
  );
}
