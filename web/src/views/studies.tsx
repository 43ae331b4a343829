import { useState } from "preact/hooks";
import { get, items, Problem, remove, type Json, type Study } from "../api";
import { number, plural } from "../format";
import { useLoad } from "../live";
import { Badge, Confirm, Empty, Heading, Loading, Trouble, When } from "../parts";

const PAGE = 100;

interface Listing {
  studies: Study[];
  next: string | number | null;
}

async function pages(count: number): Promise<Listing> {
  let studies: Study[] = [];
  let next: string | number | null = null;
  for (let i = 0; i < count; i++) {
    const answer: Json = await get<Json>(`studies?limit=${PAGE}${next === null ? "" : `&after=${encodeURIComponent(next)}`}`);
    studies = [...studies, ...items<Study>(answer)];
    next = answer.next ?? null;
    if (next === null) break;
  }
  return { studies, next };
}

/** All studies of the tenant. */
export function Studies() {
  const [count, setCount] = useState(1);
  const { data, problem, reload } = useLoad(() => pages(count), 4_000);
  const [words, setWords] = useState("");
  const [failure, setFailure] = useState<Problem | null>(null);
  const wanted = words.trim().toLowerCase();
  const shown = data?.studies.filter((study) => `${study.name} ${study.policy} ${study.state}`.toLowerCase().includes(wanted));

  async function drop(study: Study) {
    try {
      await remove(`studies/${encodeURIComponent(study.id)}`);
      setFailure(null);
    } catch (error) {
      setFailure(error as Problem);
    }
    reload();
  }

  return (
    <>
      <Heading aside={<a class="button primary" href="#/new">New study</a>}>Studies</Heading>
      {problem && <Trouble problem={problem} again={reload} />}
      {failure && <Trouble problem={failure} />}
      {!data && !problem && <Loading what="studies" />}
      {data && data.studies.length === 0 && (
        <Empty title="No studies yet">
          <p>A study asks where to measure next, and learns from what it is told.</p>
          <p>
            <a class="button primary" href="#/new">Make the first one</a>
          </p>
        </Empty>
      )}
      {data && data.studies.length > 0 && shown && (
        <>
          <div class="bar">
            <label class="inline">
              <span class="visually-hidden">Filter by name, policy or state</span>
              <input type="search" placeholder="Filter" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
            </label>
            <span class="muted" role="status">
              {wanted ? `${shown.length} of ${plural(data.studies.length, "study", "studies")}` : plural(shown.length, "study", "studies")}
            </span>
          </div>
          <div class="card flush">
            <table class="stack">
              <thead>
                <tr>
                  <th scope="col">Study</th>
                  <th scope="col">State</th>
                  <th scope="col" class="number">Best</th>
                  <th scope="col" class="number">Told</th>
                  <th scope="col" class="number">Pending</th>
                  <th scope="col">Last event</th>
                  <th scope="col"><span class="visually-hidden">Actions</span></th>
                </tr>
              </thead>
              <tbody>
                {shown.map((study) => (
                  <tr key={study.id}>
                    <th scope="row">
                      <a href={`#/studies/${encodeURIComponent(study.id)}`}>{study.name || "(without a name)"}</a>
                      <small class="muted">
                        {study.policy}, {study.direction}
                      </small>
                    </th>
                    <td data-label="State"><Badge kind={study.state}>{study.state}</Badge></td>
                    <td data-label="Best" class="number strong">{number(study.best, 5)}</td>
                    <td data-label="Told" class="number">
                      {study.told}
                      {study.failed > 0 && <small class="bad"> {study.failed} failed</small>}
                    </td>
                    <td data-label="Pending" class="number">{study.pending}</td>
                    <td data-label="Last event"><When at={study.updated ?? study.created} /></td>
                    <td class="actions">
                      <Confirm label="Delete" name={study.name} question="Delete it with all its trials?" act={() => void drop(study)} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            {shown.length === 0 && <p class="pad muted">No study matches “{words}”.</p>}
          </div>
          {data.next !== null && (
            <p>
              <button
                type="button"
                onClick={() => {
                  setCount(count + 1);
                  reload();
                }}
              >
                Show more
              </button>
            </p>
          )}
        </>
      )}
    </>
  );
}
