"""The page asks for what changes now and then: once, however often its tab is hidden and shown meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"

# The hook in a world of its own: hooks that run an effect at once, a tab that can be hidden, a clock wound by hand.
HOOKS = """
export const useState = (value) => [value, () => undefined];
export const useCallback = (f) => f;
export const useRef = (value) => ({ current: value });
export const useEffect = (f) => void f();
"""
STORY = """
import { build } from "esbuild";
const hooks = { name: "hooks", setup(b) {
  b.onResolve({ filter: /^preact/ }, () => ({ path: "hooks", namespace: "made" }));
  b.onLoad({ filter: /.*/, namespace: "made" }, () => ({ contents: HOOKS, loader: "js" }));
} };
const stdin = { contents: 'export { useLoad } from "./live";', resolveDir: "src", loader: "ts" };
const made = await build({ stdin, bundle: true, write: false, format: "esm", plugins: [hooks], logLevel: "error" });
let shown = () => undefined;
const timers = new Map();
globalThis.document = { hidden: false, baseURI: "http://localhost/", addEventListener: (_, f) => { shown = f; } };
globalThis.window = { setTimeout: (f) => timers.set(timers.size + 1, f).size };
globalThis.clearTimeout = (id) => timers.delete(id);
const { useLoad } = await import("data:text/javascript," + encodeURIComponent(made.outputFiles[0].text));
const waiting = [];
const settle = () => new Promise((done) => setTimeout(done, 0));
useLoad(() => new Promise((answer) => waiting.push(answer)), 1000);
for (let i = 0; i < 3; i++) {
  document.hidden = true;
  shown();
  document.hidden = false;
  shown();
}
const asked = waiting.length;
waiting.splice(0).forEach((answer) => answer(1));
await settle();
const loops = timers.size;
shown();
console.log(JSON.stringify({ asked, loops, again: waiting.length, left: timers.size }));
"""


@pytest.mark.skipif(not (WEB / "node_modules").is_dir() or shutil.which("node") is None, reason="needs npm ci in web/")
def test_a_tab_hidden_and_shown_during_a_question_asks_once():
    story = f"const HOOKS = {json.dumps(HOOKS)};\n{STORY}"
    words = ["node", "--input-type=module", "-e", story]
    done = subprocess.run(words, cwd=WEB, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"asked": 1, "loops": 1, "again": 1, "left": 0}
