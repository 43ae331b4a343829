// What was measured, in order, and the best so far.
import { number, plural, show } from "../format";
import type { Step, Trial, View } from "../model";
import { Caret, Figure, Plot } from "./frame";
import { beyond, clamp, drawable, padded, plain, range, type Scale } from "./scale";

interface Props {
  view: View;
  selected: number | null;
  select: (place: number | null) => void;
}

export function Trace({ view, selected, select }: Props) {
  const { steps, trials } = view;
  const values = steps.flatMap((step) => (step.value === null ? [] : [step.value]));
  const [low, high] = padded(range(values, view.direction));
  const outside = beyond(values, [low, high]);
  const stopped = new Set(trials.filter((trial) => trial.stopped !== null).map((trial) => trial.place));
  const failed = steps.filter((step) => step.value === null).length;
  const total = steps[steps.length - 1]?.place ?? 0;
  const chosen = steps.find((step) => step.place === selected);
  const radius = steps.length > 150 ? 2 : 3.4;

  function nearest(px: number, x: Scale): Step | undefined {
    const distance = (step: Step) => Math.abs(x(step.place) - px);
    const found = steps.reduce<Step | undefined>((a, b) => (a && distance(a) <= distance(b) ? a : b), undefined);
    return found && distance(found) < 24 ? found : undefined;
  }
  function walk(by: number) {
    const here = steps.findIndex((step) => step.place === selected);
    const next = here < 0 ? steps.length - 1 : clamp(here + by, 0, steps.length - 1);
    select(steps[next]?.place ?? null);
  }
  const words = `${plural(total, "trial")}${failed ? `, ${failed} failed` : ""}; best ${number(view.best)}`;
  return (
    <Figure
      title="Values in order"
      caption={
        <>
          <span class="key line accent" /> best so far <span class="key dot belief" /> measured{" "}
          {stopped.size > 0 && (
            <>
              <span class="key dot hollow" /> stopped early{" "}
            </>
          )}
          {failed > 0 && (
            <>
              <span class="key cross" /> failed{" "}
            </>
          )}
          {outside && (
            <span class="outside">
              <span class="key caret" /> {outside}{" "}
            </span>
          )}
          <span class="readout" role="status">
            {chosen ? readout(chosen, trials) : "Point at a trial, or use the arrow keys, to read it."}
          </span>
        </>
      }
      table={{
        head: ["trial", "value", "best so far"],
        rows: steps.map((step) => [step.place, step.value ?? "failed", step.best ?? "–"]),
      }}
    >
      <Plot
        label={`Values of the trials in order, and the best so far: ${words}.`}
        xAxis={plain("trial", 0.5, Math.max(total, 5) + 0.5, true)}
        yAxis={plain("value", low, high)}
        height={280}
        onPoint={(px, _, area) => select(nearest(px, area.x)?.place ?? null)}
        onLeave={() => select(null)}
        onStep={walk}
      >
        {(area) => (
          <>
            {chosen && <line class="cursor" x1={area.x(chosen.place)} x2={area.x(chosen.place)} y1={area.top} y2={area.bottom} />}
            <path class="best" d={stairs(steps, area.x, (value) => drawable(area.y(value)))} />
            {steps.map((step) => {
              const x = area.x(step.place);
              if (step.value === null) return <path class="failed" d={`M${x - 3} ${area.bottom - 9}l6 6m0-6l-6 6`} />;
              const kind = `trial${stopped.has(step.place) ? " hollow" : ""}${step === chosen ? " chosen" : ""}`;
              if (step.value < low || step.value > high) return <Caret x={x} value={step.value} low={low} area={area} />;
              return <circle class={kind} cx={x} cy={area.y(step.value)} r={step === chosen ? 6 : radius} />;
            })}
          </>
        )}
      </Plot>
    </Figure>
  );
}

function readout(step: Step, trials: Trial[]): string {
  const trial = trials.find((one) => one.place === step.place);
  return trial ? describe(trial) : `Trial ${step.place}: ${step.value === null ? "failed" : number(step.value, 6)}`;
}

export function describe(trial: Trial): string {
  const where = Object.entries(trial.params).map(([name, value]) => `${name} ${show(value)}`);
  const what = trial.value === null ? trial.state : number(trial.value, 6);
  return `Trial ${trial.place}: ${what} at ${where.join(", ")}`;
}

function stairs(steps: Step[], x: Scale, y: Scale): string {
  const known = steps.filter((step) => step.best !== null);
  return known
    .map(({ place, best }, i) => (i ? `H${x(place).toFixed(1)}V${y(best!).toFixed(1)}` : `M${x(place).toFixed(1)} ${y(best!).toFixed(1)}`))
    .join("");
}
