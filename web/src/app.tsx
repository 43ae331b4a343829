// The page: who is signed in, which view is shown, and in which theme.
import { Component, render, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import "./style.css";
import { onRefused, session } from "./api";
import { Empty, visit } from "./parts";
import { Create } from "./views/create";
import { OutsourcedRuns } from "./views/outsourced";
import { SignIn } from "./views/sign-in";
import { Studies } from "./views/studies";
import { StudyPage } from "./views/study";
import { Tokens } from "./views/tokens";

const PLACES = [
  ["#/", "Studies"],
  ["#/outsourced", "Outsourced"],
  ["#/tokens", "Tokens"],
] as const;

const hash = (): string => (location.hash.startsWith("#/") ? location.hash : "#/");

function App() {
  const [signedIn, setSignedIn] = useState(session.get() !== null);
  const [reason, setReason] = useState("");
  const [place, setPlace] = useState(hash());

  useEffect(() => {
    onRefused(() => {
      session.clear();
      setReason("This token is no longer accepted: it was revoked. Sign in with another one.");
      setSignedIn(false);
    });
    const moved = () => {
      visit.moved = true;
      (document.activeElement as HTMLElement | null)?.blur();
      setPlace(hash());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    document.title = `${signedIn ? (PLACES.find(([to]) => to === place)?.[1] ?? "Study") : "Sign in"} · Surefoot`;
  }, [place, signedIn]);

  function leave() {
    session.clear();
    setReason("");
    setSignedIn(false);
  }
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header>
        <div class="inner">
          <a class="brand" href="#/">
            <Mark /> Surefoot
          </a>
          {signedIn && (
            <nav aria-label="Main">
              {PLACES.map(([to, words]) => (
                <a href={to} aria-current={current(place, to) ? "page" : undefined}>
                  {words}
                </a>
              ))}
            </nav>
          )}
          <span class="spring" />
          <Theme />
          {signedIn && (
            <button type="button" class="quiet" onClick={leave}>
              Sign out
            </button>
          )}
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Fence key={place}>
          {signedIn ? (
            <Route place={place} />
          ) : (
            <SignIn
              reason={reason}
              enter={() => {
                visit.moved = true;
                setReason("");
                setSignedIn(true);
              }}
            />
          )}
        </Fence>
      </main>
      <footer class="muted">
        <div class="inner">
          <a href="api/v1/openapi.json">API</a> <a href="assets/licenses.txt">Licenses</a>
        </div>
      </footer>
    </>
  );
}

function skip(event: MouseEvent) {
  event.preventDefault(); // the address belongs to the views
  document.getElementById("main")?.focus();
}

const current = (place: string, to: string): boolean =>
  to === "#/" ? place === "#/" || place.startsWith("#/studies/") || place === "#/new" : place === to;

function Route({ place }: { place: string }) {
  const study = /^#\/studies\/([^/]+)$/.exec(place);
  if (study) return <StudyPage key={place} id={decoded(study[1]!)} />;
  if (place === "#/") return <Studies />;
  if (place === "#/new") return <Create />;
  if (place === "#/tokens") return <Tokens />;
  if (place === "#/outsourced") return <OutsourcedRuns />;
  return (
    <Empty title="There is no such page">
      <p>
        <a href="#/">All studies</a>
      </p>
    </Empty>
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A mistake in one view leaves the rest of the page standing. */
class Fence extends Component<{ children: ComponentChildren }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override render() {
    if (!this.state.broken) return this.props.children;
    return (
      <Empty title="This view has a problem">
        <p>Something came that the page does not understand. Reload it, or go back to the studies.</p>
        <p>
          <a class="button" href="#/">All studies</a>
        </p>
      </Empty>
    );
  }
}

type Choice = "system" | "light" | "dark";

function Theme() {
  const root = document.documentElement;
  const [theme, setTheme] = useState<Choice>((root.dataset.theme as Choice | undefined) ?? "system");
  const next: Choice = { system: "light", light: "dark", dark: "system" }[theme] as Choice;

  function choose() {
    if (next === "system") {
      delete root.dataset.theme;
      localStorage.removeItem("surefoot-theme");
    } else {
      root.dataset.theme = next;
      localStorage.setItem("surefoot-theme", next);
    }
    setTheme(next);
  }
  const shape = {
    system: "M8 2a6 6 0 1 0 0 12 6 6 0 0 0 0-12z",
    light: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6z M8 .8v2M8 13.2v2M.8 8h2M13.2 8h2M2.9 2.9l1.4 1.4M11.7 11.7l1.4 1.4M2.9 13.1l1.4-1.4M11.7 4.3l1.4-1.4",
    dark: "M13.5 10A6 6 0 0 1 6 2.5 6 6 0 1 0 13.5 10z",
  }[theme];
  return (
    <button type="button" class="quiet icon" aria-label={`Theme: ${theme}. Change to ${next}`} title={`Theme: ${theme}`} onClick={choose}>
      <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true" class={theme}>
        {theme === "system" && <path class="half" d="M8 2a6 6 0 0 0 0 12z" />}
        <path d={shape} />
      </svg>
    </button>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true" class="mark">
      <rect width="32" height="32" rx="7" />
      <path d="M5 24l6-8 4 4 8-12" />
      <circle cx="23" cy="8" r="3.6" />
    </svg>
  );
}

render(<App />, document.getElementById("app")!);
