// What a study's page draws, made once from what the service answers; the charts know nothing of HTTP.
import type { Json } from "./api";
import type { Axis } from "./charts/scale";

export interface Trial {
  /** Place in the study, from 1: the name the page gives it. */
  place: number;
  params: Json;
  value: number | null;
  state: "measured" | "failed" | "pending" | "cancelled";
  /** Why the policy had it stopped; null for a run that was not. */
  stopped: string | null;
  curve: [number, number | null][];
  /** Position on each axis of the view. */
  at: (number | null)[];
}

/** One told trial on the chart of the progress. */
export interface Step {
  place: number;
  value: number | null;
  best: number | null;
}

export interface Slice {
  axis: number;
  grid: number[];
  at: number | null;
  mean: number[];
  lower: number[];
  upper: number[];
}

export interface Ground {
  x: number;
  y: number;
  xs: number[];
  ys: number[];
  /** One row for each of `ys`. */
  mean: number[][];
}

export interface Answer {
  title: string;
  params: Json;
  at: (number | null)[];
  mean: number | null;
  lower: number | null;
  upper: number | null;
  rule: string;
}

export interface View {
  direction: string;
  confidence: number;
  axes: Axis[];
  /** The newest; `total` counts all. */
  trials: Trial[];
  total: number;
  steps: Step[];
  best: number | null;
  slices: Slice[];
  map: Ground | null;
  lines: { at: number[]; value: number }[];
  answer: Answer | null;
}

/** Read what `GET /studies/{id}/view` answers. */
export function read(raw: Json): View {
  const indices: number[] = raw.axes.map((axis: Json) => axis.index);
  const place = (x: unknown): (number | null)[] =>
    indices.map((index) => (Array.isArray(x) && typeof x[index] === "number" ? x[index] : null));
  const trials: Trial[] = raw.trials.map((row: Json) => ({
    place: row.number + 1,
    params: row.params ?? {},
    value: row.value,
    state: row.state,
    stopped: row.stopped ?? null,
    curve: row.steps ?? [],
    at: place(row.x),
  }));
  const steps: Step[] = raw.best.trial.map((number: number, i: number) => ({
    place: number + 1,
    value: raw.best.measured[i],
    best: raw.best.value[i],
  }));
  const axisOf = (index: number): number => indices.indexOf(index);
  return {
    direction: raw.direction,
    confidence: raw.confidence,
    axes: raw.axes,
    trials,
    total: raw.total,
    steps,
    best: steps[steps.length - 1]?.best ?? null,
    slices: raw.slices.map((slice: Json) => ({ ...slice, axis: axisOf(slice.axis) })),
    map: raw.map && {
      x: axisOf(raw.map.axes[0]),
      y: axisOf(raw.map.axes[1]),
      xs: raw.map.u,
      ys: raw.map.v,
      mean: raw.map.mean,
    },
    lines: raw.parallel.lines.map((at: number[], i: number) => ({ at, value: raw.parallel.values[i] })),
    answer: raw.recommendation && answer(raw.recommendation, trials, place),
  };
}

function answer(raw: Json, trials: Trial[], place: (x: unknown) => (number | null)[]): Answer {
  const rule = raw.rule ?? "";
  if (raw.kind === "level set") {
    const count = (which: unknown) => (Array.isArray(which) ? which.filter(Boolean).length : 0);
    const params = { above: count(raw.above), below: count(raw.below), undecided: count(raw.undecided) };
    return { title: "Points decided so far", params, at: place(null), mean: null, lower: null, upper: null, rule };
  }
  const names = Object.keys(trials[0]?.params ?? {});
  // The answer of some policies has fewer coordinates than what they measure.
  const whole = Array.isArray(raw.x) && raw.x.length === names.length;
  const params = raw.params ?? (whole ? Object.fromEntries(names.map((name, i) => [name, raw.x[i]])) : { x: raw.x });
  return { title: "Recommended", params, at: place(whole ? raw.x : null), mean: raw.mean, lower: raw.lower, upper: raw.upper, rule };
}
