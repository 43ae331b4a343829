// Builds the page into src/surefoot/serve/static. The bundle carries the hash of its sources, so that a test can tell
// when it has gone stale.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "src", "surefoot", "serve", "static");

/** Every file the bundle is made from, relative to this folder, in order. */
async function sources() {
  const found = await readdir(join(here, "src"), { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const names = files.map((file) => relative(here, file).split(sep).join("/"));
  return [...names, "build.mjs", "package.json", "package-lock.json", "tsconfig.json"].sort();
}

async function fingerprint() {
  const hash = createHash("sha256");
  for (const name of await sources()) {
    hash.update(name).update("\0").update(await readFile(join(here, name))).update("\0");
  }
  return hash.digest("hex");
}

await rm(target, { recursive: true, force: true });
await mkdir(join(target, "assets"), { recursive: true });
await build({
  entryPoints: [join(here, "src", "app.tsx"), join(here, "src", "theme.ts")],
  outdir: join(target, "assets"),
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: "iife", // classic scripts: nothing leaks into the global scope
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
});

const license = await readFile(join(here, "node_modules", "preact", "LICENSE"), "utf8");
await writeFile(join(target, "assets", "licenses.txt"), `The page contains Preact.\n\n${license}`);
await writeFile(join(target, "assets", "icon.svg"), await readFile(join(here, "src", "icon.svg")));
let page = await readFile(join(here, "src", "index.html"), "utf8");
for (const name of ["app.js", "app.css", "theme.js", "icon.svg"]) {
  const content = await readFile(join(target, "assets", name));
  // A new bundle has a new address, so that no cache shows an old page.
  page = page.replace(`assets/${name}`, `assets/${name}?v=${createHash("sha256").update(content).digest("hex").slice(0, 12)}`);
}
await writeFile(join(target, "index.html"), page.replace("@sources@", await fingerprint()));
