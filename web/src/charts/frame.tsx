// The frame of a chart: drawn in pixels of the space it has, with axes, a name for readers who do not see it,
// a caption, and its numbers as a table.
import type { ComponentChildren, TargetedKeyboardEvent, TargetedPointerEvent } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { number, short } from "../format";
import { type Axis, type Scale, scale, ticks } from "./scale";

export interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
  x: Scale;
  y: Scale;
}

/** Width of an element in pixels, followed as it changes. */
export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return [box, width];
}

interface FigureProps {
  title: string;
  tall?: boolean;
  caption?: ComponentChildren;
  table?: { head: string[]; rows: (string | number)[][] };
  children: ComponentChildren;
}

export function Figure({ title, tall, caption, table, children }: FigureProps) {
  const [open, setOpen] = useState(false);
  return (
    <figure class={tall ? "card tall" : "card"}>
      <h3>{title}</h3>
      {children}
      {caption && <figcaption>{caption}</figcaption>}
      {table && table.rows.length > 0 && (
        <details class="numbers" onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
          <summary>
            The numbers<span class="visually-hidden"> of {title}</span>
          </summary>
          {open && (
            <div class="scroll" tabIndex={0} role="region" aria-label={`The numbers of ${title}`}>
              <table>
                <thead>
                  <tr>
                    {table.head.map((name) => (
                      <th scope="col">{name}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {table.rows.map((row) => (
                    <tr>
                      {row.map((cell) => (
                        <td>{typeof cell === "number" ? number(cell, 5) : cell}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </details>
      )}
    </figure>
  );
}

interface PlotProps {
  label: string;
  xAxis: Axis;
  yAxis: Axis;
  height?: number;
  children: (area: Area) => ComponentChildren;
  onPoint?: (x: number, y: number, area: Area) => void;
  onLeave?: () => void;
  onStep?: (step: number) => void;
}

const tickText = (axis: Axis, value: number): string =>
  axis.labels.length ? short(axis.labels[value] ?? "", 12) : number(value, 4);

export function Plot({ label, xAxis, yAxis, height = 260, children, onPoint, onLeave, onStep }: PlotProps) {
  const [box, width] = useWidth();
  const clip = useRef(`clip-${Math.random().toString(36).slice(2)}`).current;
  const down = ticks(yAxis, 5);
  const wide = Math.max(...down.map((value) => tickText(yAxis, value).length), 1);
  const left = 14 + Math.min(7 * wide, 92);
  const [top, right, bottom] = [10, Math.max(width - 12, left + 20), height - 38];
  const area: Area = { left, right, top, bottom, x: scale(xAxis, left, right), y: scale(yAxis, bottom, top) };
  const room = Math.max(2, Math.floor((right - left) / 64));
  const across = xAxis.labels.length > room ? ticks(xAxis, room).filter((_, i) => i % Math.ceil(xAxis.labels.length / room) === 0) : ticks(xAxis, room);

  function point(event: TargetedPointerEvent<SVGSVGElement>) {
    const frame = event.currentTarget.getBoundingClientRect();
    onPoint?.(event.clientX - frame.left, event.clientY - frame.top, area);
  }
  function key(event: TargetedKeyboardEvent<SVGSVGElement>) {
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (step && onStep) {
      event.preventDefault();
      onStep(step);
    }
  }
  return (
    <div class="plot" ref={box} style={{ minHeight: `${height}px` }}>
      {width > 0 && (
        <svg
          role="img"
          aria-label={label}
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          tabindex={onStep ? 0 : undefined} // in SVG the name is written like this
          onPointerMove={onPoint && point}
          onPointerDown={onPoint && point}
          onPointerLeave={onLeave}
          onKeyDown={key}
        >
          <defs>
            <clipPath id={clip}>
              <rect x={left - 1} y={top - 6} width={right - left + 8} height={bottom - top + 12} />
            </clipPath>
          </defs>
          {down.map((value) => (
            <g>
              <line class="grid" x1={left} x2={right} y1={area.y(value)} y2={area.y(value)} />
              <text x={left - 7} y={area.y(value)} dy=".35em" text-anchor="end">
                {tickText(yAxis, value)}
              </text>
            </g>
          ))}
          {across.map((value) => {
            const x = area.x(value);
            const words = tickText(xAxis, value);
            // A tick at the very end keeps its text inside.
            const anchor = x + words.length * 3.4 > width ? "end" : "middle";
            return (
              <g>
                <line class="tick" x1={x} x2={x} y1={bottom} y2={bottom + 4} />
                <text x={anchor === "end" ? width - 1 : x} y={bottom + 16} text-anchor={anchor}>
                  {words}
                </text>
              </g>
            );
          })}
          <line class="edge" x1={left} x2={right} y1={bottom} y2={bottom} />
          <text class="name" x={(left + right) / 2} y={height - 5} text-anchor="middle">
            {short(xAxis.name, Math.max(8, Math.floor((right - left) / 7)))}
          </text>
          <g clip-path={`url(#${clip})`}>{children(area)}</g>
        </svg>
      )}
    </div>
  );
}

/** Marks a value that the axis leaves out: at its edge, the tip pointing to where the value is. */
export function Caret({ x, value, low, area }: { x: number; value: number; low: number; area: Area }) {
  const [tip, base] = value < low ? [area.bottom + 5, area.bottom - 2] : [area.top - 5, area.top + 2];
  return <path class="caret" d={`M${(x - 4).toFixed(1)} ${base}h8L${x.toFixed(1)} ${tip}Z`} />;
}

export const path = (points: [number, number][]): string =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
