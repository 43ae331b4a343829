// All coordinates at once: one line per trial, the better the stronger.
import { number, short } from "../format";
import type { View } from "../model";
import { Figure, path, useWidth } from "./frame";
import { beyond, plain, range, unit, type Axis } from "./scale";

const [TOP, BOTTOM, HEIGHT] = [38, 228, 256];
const EDGE = 46;

export function Parallel({ view, selected }: { view: View; selected: number | null }) {
  const [box, width] = useWidth();
  const sign = view.direction === "minimize" ? -1 : 1;
  const ranked = [...view.lines].sort((a, b) => sign * (a.value - b.value));
  const worth = plain("value", ...range(ranked.map((line) => line.value), view.direction));
  const axes: Axis[] = [...view.axes, worth];
  // Many axes need room: the chart then scrolls inside its own frame.
  const wide = Math.max(width, 78 * axes.length);
  const x = (i: number) => EDGE + (i * (wide - 2 * EDGE)) / Math.max(axes.length - 1, 1);
  const y = (position: number) => BOTTOM - position * (BOTTOM - TOP);
  const left = (value: number) => value < worth.low || value > worth.high;
  const outside = beyond(ranked.map((line) => line.value), [worth.low, worth.high]);
  // A value that its axis leaves out has no height on it: the line ends at the last parameter, and dots lead off the axis.
  const line = (at: number[], value: number) =>
    path((left(value) ? at : [...at, unit(worth, value)]).map((position, i) => [x(i), y(position)]));
  const off = (at: number[], value: number) =>
    path([
      [x(at.length - 1), y(at[at.length - 1]!)],
      [x(at.length), value < worth.low ? BOTTOM + 12 : TOP - 12],
    ]);
  const winner = ranked[ranked.length - 1];
  const chosen = view.trials.find((trial) => trial.place === selected && trial.value !== null && !trial.at.includes(null));
  return (
    <Figure
      title="All parameters at once"
      caption={
        <>
          One line per trial{view.total > 300 && `, ${ranked.length} of them`}; the stronger the better. <span class="key line accent" /> the best{" "}
          {outside && <span class="outside">Dotted: {outside}</span>}
        </>
      }
    >
      <div class="plot scroll" ref={box} style={{ minHeight: `${HEIGHT}px` }} tabIndex={wide > width ? 0 : undefined}>
        {width > 0 && (
          <svg
            role="img"
            aria-label={`${ranked.length} trials as lines over ${axes.map((axis) => axis.name).join(", ")}.`}
            width={wide}
            height={HEIGHT}
            viewBox={`0 0 ${wide} ${HEIGHT}`}
          >
            {ranked.map((one, i) => (
              <path class={`strand level${Math.round(2 + (9 * (i + 1)) / ranked.length)}`} d={line(one.at, one.value)} />
            ))}
            {ranked.filter((one) => left(one.value)).map((one) => (
              <path class="off" d={off(one.at, one.value)} />
            ))}
            {winner && <path class="best" d={line(winner.at, winner.value)} />}
            {chosen && <path class="strand chosen" d={line(view.axes.map((axis, i) => unit(axis, chosen.at[i]!)), chosen.value!)} />}
            {axes.map((axis, i) => (
              <g>
                <line class="edge" x1={x(i)} x2={x(i)} y1={TOP} y2={BOTTOM} />
                <text class="name" x={x(i)} y={14} text-anchor="middle">
                  {short(axis.name, Math.max(11, Math.floor((x(1) - x(0)) / 8)))}
                </text>
                {marks(axis).map(([position, words]) => (
                  <text class="halo" x={x(i)} y={y(position)} dy={position <= 0 ? 16 : position >= 1 ? -7 : 4} text-anchor="middle">
                    {short(words, 11)}
                  </text>
                ))}
              </g>
            ))}
          </svg>
        )}
      </div>
    </Figure>
  );
}

/** Words beside an axis: all choices, else both ends. */
function marks(axis: Axis): [number, string][] {
  if (axis.labels.length) return axis.labels.slice(0, 12).map((label, i) => [i / Math.max(axis.labels.length - 1, 1), label]);
  return [
    [0, number(axis.low)],
    [1, number(axis.high)],
  ];
}
