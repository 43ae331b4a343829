import { useState } from "preact/hooks";
import { number, plural, show } from "../format";
import type { Trial, View } from "../model";

const STEP = 50;
const KINDS = ["all", "measured", "failed", "stopped", "pending", "cancelled"] as const;
type Kind = (typeof KINDS)[number];

interface Props {
  view: View;
  selected: number | null;
  select: (place: number | null) => void;
}

const status = (trial: Trial): Kind => (trial.stopped !== null && trial.state === "measured" ? "stopped" : trial.state);

/** All trials, the newest first. */
export function Trials({ view, selected, select }: Props) {
  const [kind, setKind] = useState<Kind>("all");
  const [most, setMost] = useState(STEP);
  const found = view.trials.filter((trial) => kind === "all" || status(trial) === kind || (kind === "stopped" && trial.stopped !== null));
  const shown = [...found].reverse().slice(0, most);
  const names = [...new Set(view.trials.flatMap((trial) => Object.keys(trial.params)))];
  const kinds = KINDS.filter((one) => one === "all" || view.trials.some((trial) => status(trial) === one));
  const reasons = view.trials.some((trial) => trial.stopped);
  return (
    <>
      <div class="bar">
        <label class="inline">
          Show{" "}
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
            {kinds.map((one) => (
              <option value={one}>{one}</option>
            ))}
          </select>
        </label>
        <span class="muted">
          {plural(found.length, "trial")}
          {view.total > view.trials.length && ` of the newest ${view.trials.length}; there are ${view.total}`}
        </span>
      </div>
      <div class="card flush scroll" tabIndex={0} role="region" aria-label="Table of trials">
        <table class="trials">
          <thead>
            <tr>
              <th scope="col" class="number">Trial</th>
              <th scope="col">State</th>
              <th scope="col" class="number">Value</th>
              {names.map((name) => (
                <th scope="col">{name}</th>
              ))}
              {reasons && <th scope="col">Why it was stopped</th>}
            </tr>
          </thead>
          <tbody>
            {shown.map((trial) => (
              <tr
                key={trial.place}
                class={`${status(trial)}${trial.value !== null && trial.value === view.best ? " best" : ""}${trial.place === selected ? " chosen" : ""}`}
                onPointerEnter={() => select(trial.place)}
                onPointerLeave={() => select(null)}
              >
                <th scope="row" class="number">{trial.place}</th>
                <td>
                  {status(trial)}
                  {trial.curve.length > 0 && <small class="muted"> {plural(trial.curve.length, "step")}</small>}
                </td>
                <td class="number">{number(trial.value, 6)}</td>
                {names.map((name) => (
                  <td>{show(trial.params[name])}</td>
                ))}
                {reasons && <td class="why">{trial.stopped ?? ""}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.length > most && (
        <p>
          <button type="button" onClick={() => setMost(most + 4 * STEP)}>
            Show more
          </button>
        </p>
      )}
    </>
  );
}
