import { useEffect, useRef, useState } from "preact/hooks";
import type { Study } from "../api";
import { Curves } from "../charts/curves";
import { MapChart } from "../charts/map";
import { Parallel } from "../charts/parallel";
import { SliceChart } from "../charts/slice";
import { describe, Trace } from "../charts/trace";
import { number, show } from "../format";
import { useLive, type Live } from "../live";
import type { View } from "../model";
import { Badge, Empty, Heading, Loading, Notice, When } from "../parts";
import { Trials } from "./trials";

/** The live page of one study. */
export function StudyPage({ id }: { id: string }) {
  const live = useLive(id);
  const { study, view, connection, problem } = live;
  const [selected, select] = useState<number | null>(null);
  useEffect(() => {
    if (study) document.title = `${study.name} · Surefoot`;
  }, [study?.name]);

  if (connection === "gone") {
    return (
      <>
        <Heading>{study?.name ?? "Study"}</Heading>
        <Notice kind="bad">
          {problem?.status === 404 ? "There is no such study, or it is not yours. It may have been deleted." : problem?.message}
        </Notice>
        <p>
          <a href="#/">All studies</a>
        </p>
      </>
    );
  }
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href="#/">Studies</a> <span aria-hidden="true">/</span>
      </nav>
      <Heading aside={study && <Status live={live} />}>{study?.name || "Study"}</Heading>
      {connection === "lost" && <Lost live={live} />}
      {!study && connection === "loading" && <Loading what="the study" />}
      {study && (
        <>
          <p class="muted lead">
            <Badge kind={study.state}>{study.state}</Badge> {study.policy}, {study.direction}, made <When at={study.created} />
          </p>
          <Facts study={study} view={view} />
        </>
      )}
      <Arrivals view={view} />
      {live.trouble && <Notice kind="bad">The pictures cannot be drawn: {live.trouble}</Notice>}
      {study && !view && !live.trouble && connection !== "lost" && <Loading what="pictures" />}
      {view && study && <Pictures view={view} study={study} selected={selected} select={select} />}
    </>
  );
}

function Status({ live }: { live: Live }) {
  const words = { loading: "Loading", live: "Live", paused: "Paused", lost: "No connection", gone: "Gone" }[live.connection];
  const paused = live.connection === "paused";
  return (
    <>
      <span class={`pulse ${live.connection}`}>
        <i aria-hidden="true" /> {words}
      </span>
      <button type="button" class="quiet" aria-pressed={paused} onClick={() => live.pause(!paused)}>
        {paused ? "Go on" : "Pause"}
      </button>
    </>
  );
}

function Lost({ live }: { live: Live }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((now) => now + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((live.retryAt - Date.now()) / 1000));
  return (
    <Notice kind="bad">
      <p>
        {live.problem?.message} {live.study && "What you see is the last that arrived."}{" "}
        <span aria-hidden="true">Next try in {seconds} s.</span>
      </p>
      <button type="button" onClick={live.again}>
        Try now
      </button>
    </Notice>
  );
}

function Facts({ study, view }: { study: Study; view: View | null }) {
  const best = view ? view.best : study.best;
  const facts: [string, string | number][] = [
    ["told", study.told],
    ["pending", study.pending],
  ];
  if (study.failed) facts.push(["failed", study.failed]);
  if (study.stopped) facts.push(["stopped early", study.stopped]);
  return (
    <dl class="facts">
      <div class="card main">
        <dt>best measured</dt>
        <dd id="best">{number(best, 6)}</dd>
      </div>
      {facts.map(([name, value]) => (
        <div class="card" key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      <div class="card">
        <dt>last event</dt>
        <dd>
          <When at={study.updated ?? study.created} />
        </dd>
      </div>
    </dl>
  );
}

/** Says aloud what arrived while the page was open. */
function Arrivals({ view }: { view: View | null }) {
  const known = useRef<number | null>(null);
  const [words, setWords] = useState("");
  useEffect(() => {
    if (!view) return;
    // Told trials come before all others: the last of them has as its place their number.
    const told = view.steps[view.steps.length - 1]?.place ?? 0;
    if (known.current !== null && told > known.current) {
      const newest = view.trials.find((trial) => trial.place === told);
      const many = told - known.current;
      setWords(many === 1 && newest ? `${describe(newest)}.` : `${many} trials arrived. Best ${number(view.best, 6)}.`);
    }
    known.current = told;
  }, [view]);
  return (
    <p class="visually-hidden" id="arrivals" aria-live="polite">
      {words}
    </p>
  );
}

interface PicturesProps {
  view: View;
  study: Study;
  selected: number | null;
  select: (place: number | null) => void;
}

function Pictures({ view, study, selected, select }: PicturesProps) {
  const measured = view.lines.length;
  const curves = view.trials.some((trial) => trial.curve.length > 0);
  if (!view.trials.length) {
    return (
      <Empty title="Nothing was asked yet">
        <p>Ask where to measure first, measure there, and tell the value. Trials appear here as they arrive.</p>
        <pre>{`import surefoot

client = surefoot.Client("${location.origin}", token="...")
study = client.study("${study.id}")
query = study.ask()
study.tell(query, measure(query))`}</pre>
      </Empty>
    );
  }
  return (
    <>
      {view.answer && (
        <section aria-labelledby="recommended">
          <h2 id="recommended">{view.answer.title}</h2>
          <div class="card pad">
            <dl class="params">
              {Object.entries(view.answer.params).map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{show(value)}</dd>
                </div>
              ))}
            </dl>
            <p class="muted">
              {view.answer.mean !== null && (
                <>
                  Expected value {number(view.answer.mean, 5)}
                  {view.answer.lower !== null && view.answer.upper !== null && `, between ${number(view.answer.lower)} and ${number(view.answer.upper)}`}
                  .{" "}
                </>
              )}
              {view.answer.rule && `Rule: ${view.answer.rule}.`}
            </p>
          </div>
        </section>
      )}
      {measured > 0 && (
        <section aria-labelledby="progress">
          <h2 id="progress">Progress</h2>
          <div class="pictures">
            <Trace view={view} selected={selected} select={select} />
            {curves && <Curves view={view} selected={selected} select={select} />}
          </div>
        </section>
      )}
      {(view.slices.length > 0 || view.map) && measured > 0 && (
        <section aria-labelledby="belief">
          <h2 id="belief">What is believed</h2>
          <p class="muted">
            The mean of the belief with a band of {`${Math.round(100 * view.confidence)}\u00a0%`}, cut through the {view.answer ? "recommended" : "best"} point
            {view.answer && (
              <>
                {" "}
                <span class="whole">
                  (<span class="key line answer" /> where it lies)
                </span>
              </>
            )}
            , and the measured values.
          </p>
          <div class="pictures small">
            {view.map && <MapChart view={view} map={view.map} selected={selected} />}
            {view.slices.map((slice) => (
              <SliceChart key={slice.axis} view={view} slice={slice} selected={selected} />
            ))}
          </div>
        </section>
      )}
      {measured > 1 && view.axes.length > 1 && (
        <section aria-labelledby="parallel">
          <h2 id="parallel">Parameters</h2>
          <Parallel view={view} selected={selected} />
        </section>
      )}
      <section aria-labelledby="trials">
        <h2 id="trials">Trials</h2>
        <Trials view={view} selected={selected} select={select} />
      </section>
      <section aria-labelledby="settings">
        <h2 id="settings">Settings</h2>
        <details class="card pad">
          <summary>Domain and options of the policy</summary>
          <pre>{JSON.stringify({ id: study.id, policy: study.policy, options: study.options, domain: study.domain }, null, 2)}</pre>
        </details>
      </section>
    </>
  );
}
