import { useState } from "preact/hooks";
import { post, type Json, type Study } from "../api";
import { Heading, Notice } from "../parts";

interface Row {
  key: number;
  name: string;
  kind: "float" | "int" | "choice";
  low: string;
  high: string;
  log: boolean;
  values: string;
}

const POLICIES = [
  ["GPUCB", "GP-UCB: the upper confidence bound of a Gaussian process"],
  ["ExpectedImprovement", "Expected improvement"],
  ["ThompsonSampling", "Thompson sampling"],
  ["MaxValueEntropySearch", "Max-value entropy search"],
  ["ProbabilityOfImprovement", "Probability of improvement"],
  ["SobolSearch", "Sobol search: evenly spread, no model"],
  ["RandomSearch", "Random search"],
] as const;

const fresh = (key: number): Row => ({ key, name: "", kind: "float", low: "0", high: "1", log: false, values: "" });

/** A small form for a study over named parameters. */
export function Create() {
  const [name, setName] = useState("");
  const [policy, setPolicy] = useState<string>("GPUCB");
  const [other, setOther] = useState("");
  const [direction, setDirection] = useState("maximize");
  const [seed, setSeed] = useState("");
  const [options, setOptions] = useState("");
  const [rows, setRows] = useState<Row[]>([{ ...fresh(0), name: "x" }]);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const change = (key: number, part: Partial<Row>) => setRows(rows.map((row) => (row.key === key ? { ...row, ...part } : row)));

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    setProblem("");
    setBusy(true);
    try {
      const body: Json = {
        name: name.trim(),
        policy: policy || other.trim(),
        direction,
        space: space(rows),
        options: settings(options),
      };
      if (!body.name) throw new Error("Give the study a name.");
      if (!body.policy) throw new Error("Name the policy.");
      if (seed.trim()) body.seed = whole(seed, "the seed");
      const made = await post<Study>("studies", body);
      location.hash = `#/studies/${encodeURIComponent(made.id)}`;
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  }

  return (
    <>
      <Heading>New study</Heading>
      <form class="card pad" onSubmit={(event) => void submit(event)} noValidate>
        <div class="fields">
          <label>
            Name
            <input name="name" maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <label>
            Policy
            <select name="policy" value={policy} onChange={(event) => setPolicy(event.currentTarget.value)}>
              {POLICIES.map(([value, words]) => (
                <option value={value}>{words}</option>
              ))}
              <option value="">Another one, by its name</option>
            </select>
          </label>
          {policy === "" && (
            <label>
              Name of the policy
              <input name="other" value={other} onInput={(event) => setOther(event.currentTarget.value)} />
            </label>
          )}
          <fieldset class="radios">
            <legend>The best value is</legend>
            {["maximize", "minimize"].map((which) => (
              <label class="inline">
                <input type="radio" name="direction" value={which} checked={direction === which} onChange={() => setDirection(which)} />
                {which === "maximize" ? "the largest" : "the smallest"}
              </label>
            ))}
          </fieldset>
        </div>
        <fieldset>
          <legend>Parameters</legend>
          {rows.map((row, i) => (
            <Parameter key={row.key} row={row} place={i + 1} change={(part) => change(row.key, part)} drop={rows.length > 1 ? () => setRows(rows.filter((one) => one !== row)) : undefined} />
          ))}
          <button type="button" onClick={() => setRows([...rows, fresh(Math.max(...rows.map((row) => row.key)) + 1)])}>
            Add a parameter
          </button>
        </fieldset>
        <details>
          <summary>Seed and options of the policy</summary>
          <div class="fields">
            <label>
              Seed
              <input name="seed" inputMode="numeric" placeholder="drawn by the service" value={seed} onInput={(event) => setSeed(event.currentTarget.value)} />
            </label>
            <label>
              Options, as JSON
              <textarea name="options" rows={3} spellcheck={false} placeholder={'{"initial": 8}'} value={options} onInput={(event) => setOptions(event.currentTarget.value)} />
            </label>
          </div>
        </details>
        {problem && <Notice kind="bad">{problem}</Notice>}
        <div class="bar">
          <button type="submit" class="primary" disabled={busy}>
            {busy ? "Making it …" : "Create the study"}
          </button>
          <a class="button quiet" href="#/">Cancel</a>
        </div>
      </form>
    </>
  );
}

interface ParameterProps {
  row: Row;
  place: number;
  change: (part: Partial<Row>) => void;
  drop?: () => void;
}

function Parameter({ row, place, change, drop }: ParameterProps) {
  return (
    <div class="parameter" role="group" aria-label={`Parameter ${place}`}>
      <label>
        Name
        <input value={row.name} onInput={(event) => change({ name: event.currentTarget.value })} />
      </label>
      <label>
        Kind
        <select value={row.kind} onChange={(event) => change({ kind: event.currentTarget.value as Row["kind"] })}>
          <option value="float">real number</option>
          <option value="int">whole number</option>
          <option value="choice">one of several</option>
        </select>
      </label>
      {row.kind === "choice" ? (
        <label class="wide">
          Values, with commas between them
          <input value={row.values} placeholder="relu, tanh" onInput={(event) => change({ values: event.currentTarget.value })} />
        </label>
      ) : (
        <>
          <label>
            From
            <input inputMode="decimal" value={row.low} onInput={(event) => change({ low: event.currentTarget.value })} />
          </label>
          <label>
            To
            <input inputMode="decimal" value={row.high} onInput={(event) => change({ high: event.currentTarget.value })} />
          </label>
          <label class="inline">
            <input type="checkbox" checked={row.log} onChange={(event) => change({ log: event.currentTarget.checked })} />
            logarithmic
          </label>
        </>
      )}
      {drop && (
        <button type="button" class="quiet" aria-label={`Remove parameter ${place}`} onClick={drop}>
          Remove
        </button>
      )}
    </div>
  );
}

/** The rows as `Space.to_dict()` writes them. */
function space(rows: Row[]): Json {
  const parameters: Json = Object.create(null); // a parameter may bear any name
  for (const [i, row] of rows.entries()) {
    const name = row.name.trim();
    if (!name) throw new Error(`Parameter ${i + 1} has no name.`);
    if (name in parameters) throw new Error(`Two parameters are called “${name}”.`);
    if (row.kind === "choice") {
      const values = row.values.split(",").map((value) => value.trim()).filter(Boolean);
      if (values.length < 2) throw new Error(`“${name}” needs at least two values.`);
      parameters[name] = { type: "choice", values };
    } else {
      const read = row.kind === "int" ? whole : real;
      const [low, high] = [read(row.low, `the lower end of “${name}”`), read(row.high, `the upper end of “${name}”`)];
      if (low >= high) throw new Error(`“${name}” must go from a smaller to a larger number.`);
      if (row.log && low <= 0) throw new Error(`“${name}” is logarithmic and must begin above 0.`);
      parameters[name] = { type: row.kind, low, high, log: row.log };
    }
  }
  return { domain: "Space", parameters };
}

function real(text: string, what: string): number {
  const value = Number(text.trim());
  if (!text.trim() || !Number.isFinite(value)) throw new Error(`“${text}” is not a number: ${what}.`);
  return value;
}

function whole(text: string, what: string): number {
  const value = real(text, what);
  if (!Number.isSafeInteger(value)) throw new Error(`“${text}” is not a whole number: ${what}.`);
  return value;
}

function settings(text: string): Json {
  if (!text.trim()) return {};
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    throw new Error("The options are not JSON.");
  }
  if (typeof read !== "object" || read === null || Array.isArray(read)) throw new Error("The options must be an object: { … }.");
  return read as Json;
}
