// The belief over two coordinates, as steps of color from the worst to the best.
import { number } from "../format";
import type { Ground, View } from "../model";
import { Figure, Plot } from "./frame";
import type { Axis, Scale } from "./scale";

const LEVELS = 12;
const FINER = 4;

interface Props {
  view: View;
  map: Ground;
  selected: number | null;
}

export function MapChart({ view, map, selected }: Props) {
  const values = map.mean.flat();
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const sign = view.direction === "minimize" ? -1 : 1;
  const level = (value: number): number => {
    const share = high > low ? (value - low) / (high - low) : 0.5;
    return Math.min(LEVELS - 1, Math.floor((sign > 0 ? share : 1 - share) * LEVELS));
  };
  const [across, up] = [view.axes[map.x]!, view.axes[map.y]!];
  const placed = view.trials.filter((trial) => trial.at[map.x] !== null && trial.at[map.y] !== null);
  const answer = view.answer && [view.answer.at[map.x], view.answer.at[map.y]];
  const [worst, best] = sign > 0 ? [low, high] : [high, low];
  const every = Math.max(1, Math.ceil(map.xs.length / 12));
  const down = Math.max(1, Math.ceil(map.ys.length / 12));
  return (
    <Figure
      tall
      title={`${across.name} and ${up.name}`}
      caption={
        <>
          <span class="ramp" aria-hidden="true">
            {Array.from({ length: LEVELS }, (_, i) => (
              <i class={`level${i}`} />
            ))}
          </span>
          from {number(worst)} to {number(best)}; up is {up.name}. <span class="key dot ink" /> measured{" "}
          {answer && (
            <>
              <span class="key dot accent" /> recommended
            </>
          )}
        </>
      }
      table={{
        head: [`${up.name} \\ ${across.name}`, ...map.xs.filter((_, i) => i % every === 0).map((x) => number(x))],
        rows: map.ys.flatMap((y, j) => (j % down ? [] : [[y, ...map.mean[j]!.filter((_, i) => i % every === 0)]])),
      }}
    >
      <Plot
        label={`The believed value over ${across.name} and ${up.name}, from ${number(worst)} to ${number(best)}.`}
        xAxis={across}
        yAxis={up}
        height={340}
      >
        {(area) => (
          <>
            {cells(map, across, up, level, area.x, area.y).map((cell) => (
              <rect class={`level${cell.level}`} x={cell.x} y={cell.y} width={cell.width} height={cell.height} />
            ))}
            {placed.map((trial) => {
              const [x, y] = [area.x(trial.at[map.x]!), area.y(trial.at[map.y]!)];
              if (trial.state === "failed") return <path class="failed" d={`M${x - 3} ${y - 3}l6 6m0-6l-6 6`} />;
              const kind = trial.state === "pending" ? "spot hollow" : "spot";
              return <circle class={`${kind}${trial.place === selected ? " chosen" : ""}`} cx={x} cy={y} r={trial.place === selected ? 6 : 3} />;
            })}
            {answer && answer[0] != null && answer[1] != null && (
              <circle class="star" cx={area.x(answer[0])} cy={area.y(answer[1])} r={5.5} />
            )}
          </>
        )}
      </Plot>
    </Figure>
  );
}

interface Cell {
  x: number;
  y: number;
  width: number;
  height: number;
  level: number;
}

/** Rectangles of one color: neighbors of a row that share their level are one. */
function cells(map: Ground, horizontal: Axis, vertical: Axis, level: (value: number) => number, x: Scale, y: Scale): Cell[] {
  // Between whole numbers there is nothing; elsewhere the steps of color become smooth lines.
  const [across, up] = [horizontal.whole ? 1 : FINER, vertical.whole ? 1 : FINER];
  const columns = borders(finer(map.xs.map(x), across), x(horizontal.low), x(horizontal.high));
  const rows = borders(finer(map.ys.map(y), up), y(vertical.low), y(vertical.high));
  return surface(map.mean, across, up).flatMap((row, j) => {
    const made: Cell[] = [];
    let start = 0;
    for (let i = 1; i <= row.length; i++) {
      if (i < row.length && level(row[i]!) === level(row[start]!)) continue;
      const [left, right] = [columns[start]!, columns[i]!];
      const [below, above] = [rows[j]!, rows[j + 1]!];
      // Half a pixel over the edge, so that no seam shows between two cells.
      made.push({ x: left, y: Math.min(above, below), width: right - left + 0.5, height: Math.abs(below - above) + 0.5, level: level(row[start]!) });
      start = i;
    }
    return made;
  });
}

/** Linear interpolation: `times` steps between two neighbors. */
function finer(values: number[], times: number): number[] {
  const made = values.slice(0, -1).flatMap((value, i) =>
    Array.from({ length: times }, (_, k) => value + ((values[i + 1]! - value) * k) / times),
  );
  return [...made, ...values.slice(-1)];
}

function surface(rows: number[][], across: number, up: number): number[][] {
  const wide = rows.map((row) => finer(row, across));
  const columns = wide[0]!.map((_, i) => finer(wide.map((row) => row[i]!), up));
  return columns[0]!.map((_, j) => columns.map((column) => column[j]!));
}

/** Borders half-way between centers, and the two ends. */
function borders(centers: number[], first: number, last: number): number[] {
  const between = centers.slice(1).map((center, i) => (center + centers[i]!) / 2);
  return [first, ...between, last];
}
