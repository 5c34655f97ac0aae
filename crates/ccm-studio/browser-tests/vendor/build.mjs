// Makes the vendored files: one file for each entry here, with its types and
// the licences of what is inside. The same input gives the same bytes.
import { build } from "esbuild";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (!out) throw new Error("usage: node build.mjs DIRECTORY");
await mkdir(out, { recursive: true });

/** @type {Map<string, string>} directories of packages, by name */
const packages = new Map();
for (const name of ["preact", "codemirror"]) {
  const result = await build({
    absWorkingDir: join(here, ".."),
    entryPoints: [join(here, `${name}.js`)],
    outfile: join(out, `${name}.js`),
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
    write: false,
  });
  const from = `browser-tests/vendor/${name}.js`;
  const banner = `// Made by \`cargo xtask studio-vendor\` from ${from}. Licences: LICENSES.txt\n`;
  await writeFile(join(out, `${name}.js`), banner + result.outputFiles[0].text);
  // The entry only names what is exported, so it is its own declaration; types come from beside it.
  const types = await Promise.all(
    [".js", ".d.ts"].map((end) => readFile(join(here, name + end), "utf8")),
  );
  await writeFile(join(out, `${name}.d.ts`), types.join(""));
  for (const input of Object.keys(result.metafile.inputs)) {
    const parts = input.split("/");
    const at = parts.lastIndexOf("node_modules");
    if (at < 0) continue;
    const length = parts[at + 1].startsWith("@") ? 3 : 2;
    const directory = parts.slice(0, at + length).join(sep);
    packages.set(parts.slice(at + 1, at + length).join("/"), join(here, "..", directory));
  }
}

/**
 * @type {Map<string, {words: string, names: string[]}>} licences without what stands above their
 *   grant, as most differ in nothing else
 */
const licences = new Map();
for (const name of [...packages.keys()].sort()) {
  const directory = /** @type {string} */ (packages.get(name));
  const about = JSON.parse(await readFile(join(directory, "package.json"), "utf8"));
  const file = (await readdir(directory)).sort().find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no licence file in ${relative(here, directory)}`);
  const text = (await readFile(join(directory, file), "utf8")).replaceAll("\r\n", "\n").trim();
  const grant = Math.max(0, text.search(/^Permission is hereby granted/m));
  const above = text
    .slice(0, grant)
    .trim()
    .split(/\n+/)
    .filter(Boolean)
    .map((line) => `\n    ${line.trim()}`);
  const words = text.slice(grant);
  // Some break their lines elsewhere.
  const key = words.replaceAll(/\s+/g, " ");
  const known = licences.get(key) ?? { words, names: [] };
  known.names.push(`${name} ${about.version} (${about.license})${above.join("")}`);
  licences.set(key, known);
}
const texts = [...licences.values()].map(({ words, names }) => `${names.join("\n")}\n\n${words}\n`);
await writeFile(join(out, "LICENSES.txt"), texts.join(`\n${"-".repeat(72)}\n\n`));
