// The belief along one coordinate, through the recommended point.
import { number } from "../format";
import type { Slice, View } from "../model";
import { Caret, Figure, path, Plot } from "./frame";
import { beyond, drawable, padded, plain, range } from "./scale";

interface Props {
  view: View;
  slice: Slice;
  selected: number | null;
}

export function SliceChart({ view, slice, selected }: Props) {
  const { axis: index, grid, mean, lower, upper } = slice;
  const axis = view.axes[index]!;
  const measured = view.trials.filter((trial) => trial.value !== null && trial.at[index] !== null);
  const seen = range(measured.map((trial) => trial.value!), view.direction);
  const all = [...mean, ...(measured.length ? seen : [])];
  // Wide bands far from all data would leave no room for the rest: they are cut at half a range beyond it.
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const room = 0.6 * (most - least || 1);
  const [low, high] = padded([
    Math.max(Math.min(least, ...lower), least - room),
    Math.min(Math.max(most, ...upper), most + room),
  ]);
  const y = plain("value", low, high);
  const outside = beyond(measured.map((trial) => trial.value!), [low, high]);
  const answer = view.answer?.at[index] ?? null;
  const top = grid[mean.indexOf(view.direction === "minimize" ? Math.min(...mean) : Math.max(...mean))]!;
  const best = axis.labels.length ? axis.labels[top] : number(top);
  return (
    <Figure
      title={axis.name}
      caption={
        outside && (
          <span class="outside">
            <span class="key caret" /> {outside}
          </span>
        )
      }
      table={{
        head: [axis.name, "mean", "lower", "upper"],
        rows: grid.map((at, i) => [axis.labels[at] ?? at, mean[i]!, lower[i]!, upper[i]!]),
      }}
    >
      <Plot label={`The believed value along ${axis.name}: best near ${best}.`} xAxis={axis} yAxis={y} height={210}>
        {(area) => {
          const at = grid.map(area.x);
          const cut = (value: number) => drawable(area.y(value));
          return (
            <>
              {axis.labels.length ? (
                grid.map((_, i) => (
                  <>
                    <line class="whisker" x1={at[i]} x2={at[i]} y1={cut(lower[i]!)} y2={cut(upper[i]!)} />
                    <line class="mean" x1={at[i]! - 9} x2={at[i]! + 9} y1={cut(mean[i]!)} y2={cut(mean[i]!)} />
                  </>
                ))
              ) : (
                <>
                  <path
                    class="band"
                    d={`${path(grid.map((_, i) => [at[i]!, cut(upper[i]!)]))}${path(
                      grid.map((_, i): [number, number] => [at[i]!, cut(lower[i]!)]).reverse(),
                    ).replace("M", "L")}Z`}
                  />
                  <path class="mean" d={path(grid.map((_, i) => [at[i]!, cut(mean[i]!)]))} />
                </>
              )}
              {answer !== null && <line class="answer" x1={area.x(answer)} x2={area.x(answer)} y1={area.top} y2={area.bottom} />}
              {measured.map((trial) =>
                trial.value! < low || trial.value! > high ? (
                  <Caret x={area.x(trial.at[index]!)} value={trial.value!} low={low} area={area} />
                ) : (
                  <circle
                    class={`trial${trial.place === selected ? " chosen" : " faint"}`}
                    cx={area.x(trial.at[index]!)}
                    cy={cut(trial.value!)}
                    r={trial.place === selected ? 6 : 2.6}
                  />
                ),
              )}
            </>
          );
        }}
      </Plot>
    </Figure>
  );
}
