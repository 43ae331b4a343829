import { get, items, type Outsourced } from "../api";
import { useLoad } from "../live";
import { Badge, Empty, Heading, Loading, Trouble, When } from "../parts";

/** Runs whose data stay with their owner: the service sees what was released, and answers with row numbers. */
export function OutsourcedRuns() {
  const { data, problem, reload } = useLoad(async () => items<Outsourced>(await get("outsourced")), 4_000);
  return (
    <>
      <Heading>Outsourced runs</Heading>
      <p class="muted">
        The data of these runs stay with their owner. The service holds a private release of the inputs, asks for one row
        number after another, and learns from the answers.
      </p>
      {problem && <Trouble problem={problem} again={reload} />}
      {!data && !problem && <Loading what="runs" />}
      {data && data.length === 0 && (
        <Empty title="No outsourced runs yet">
          <p>The owner of the data starts one, from where the data are:</p>
          <pre>{`surefoot curate DATA.csv --objective MODULE:FUNCTION --server ${location.origin} \\
  --epsilon 1 --delta 1e-5`}</pre>
        </Empty>
      )}
      {data && data.length > 0 && (
        <div class="card flush">
          <table class="stack">
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">State</th>
                <th scope="col" class="number">Answered</th>
                <th scope="col" class="number">Rows released</th>
                <th scope="col">Last event</th>
              </tr>
            </thead>
            <tbody>
              {data.map((run) => (
                <tr key={run.id}>
                  <th scope="row">
                    {run.name || "(without a name)"}
                    <small class="muted">{run.policy}</small>
                  </th>
                  <td data-label="State"><Badge kind={run.state}>{run.state}</Badge></td>
                  <td data-label="Answered" class="number">
                    {run.answered ?? run.step ?? 0}
                    {run.asks != null && ` of ${run.asks}`}
                  </td>
                  <td data-label="Rows released" class="number">{run.rows ?? "–"}</td>
                  <td data-label="Last event"><When at={(run.updated as string | undefined) ?? run.created} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
