// Learning curves of the runs that report while they go; those given up end early.
import type { View } from "../model";
import { Caret, Figure, path, Plot } from "./frame";
import { beyond, drawable, padded, plain, range } from "./scale";

interface Props {
  view: View;
  selected: number | null;
  select: (place: number | null) => void;
}

export function Curves({ view, selected, select }: Props) {
  const told = view.trials.filter((trial) => trial.curve.length > 0);
  const values = told.flatMap((trial) => trial.curve.flatMap(([, value]) => (value === null ? [] : [value])));
  const longest = Math.max(...told.map((trial) => trial.curve[trial.curve.length - 1]![0]));
  const [low, high] = padded(range(values, view.direction));
  const outside = beyond(values, [low, high]);
  const stopped = told.filter((trial) => trial.stopped !== null);
  return (
    <Figure
      title="Learning curves"
      caption={
        <>
          <span class="key line belief" /> ran to its end <span class="key line bad" /> stopped early ({stopped.length} of{" "}
          {told.length}){" "}
          {outside && (
            <span class="outside">
              <span class="key caret" /> {outside}
            </span>
          )}
        </>
      }
      table={{
        head: ["trial", "last step", "last value", "stopped because"],
        rows: told.map((trial) => {
          const [step, value] = trial.curve[trial.curve.length - 1]!;
          return [trial.place, step, value ?? "–", trial.stopped ?? "–"];
        }),
      }}
    >
      <Plot
        label={`Reported values by step of ${told.length} runs, of which ${stopped.length} were stopped early.`}
        xAxis={plain("step", 0, Math.max(longest, 1), true)}
        yAxis={plain("value", low, high)}
      >
        {(area) =>
          told.map((trial) => {
            const known = trial.curve.flatMap(([step, value]): [number, number][] => (value === null ? [] : [[step, value]]));
            const points = known.map(([step, value]): [number, number] => [area.x(step), drawable(area.y(value))]);
            const [end, last] = [points[points.length - 1], known[known.length - 1]?.[1]];
            const left = last !== undefined && (last < low || last > high);
            const kind = `${trial.stopped === null ? "curve" : "curve stopped"}${trial.place === selected ? " chosen" : ""}`;
            return (
              <g onPointerEnter={() => select(trial.place)} onPointerLeave={() => select(null)}>
                <path class={kind} d={path(points)} />
                {end && left && <Caret x={end[0]} value={last} low={low} area={area} />}
                {end && !left && trial.stopped !== null && <circle class="halt" cx={end[0]} cy={end[1]} r={3} />}
              </g>
            );
          })
        }
      </Plot>
    </Figure>
  );
}
