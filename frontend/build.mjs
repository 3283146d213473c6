/** Build the participant's page and the script of the researcher's pages: node build.mjs [FOLDER]. The default is the Python package. */

import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/vseg/server/static"));
const swagger = join(here, "node_modules/swagger-ui-dist");

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: [
    { in: "src/main.ts", out: "experiment" },
    { in: "src/style.css", out: "experiment" }, // without jsPsych's style sheet, which contains 350 kB of fonts
    { in: "src/dashboard/main.ts", out: "dashboard" },
    { in: "src/dashboard/dashboard.css", out: "dashboard" },
  ],
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
copyFileSync(join(here, "src/index.html"), join(out, "index.html"));
mkdirSync(join(out, "swagger"));
for (const name of ["swagger-ui.css", "swagger-ui-bundle.js"]) copyFileSync(join(swagger, name), join(out, "swagger", name));
writeFileSync(join(out, "THIRD_PARTY.txt"), notices());
for (const name of readdirSync(out, { recursive: true }).filter((name) => /\.(js|css|html)$/.test(name))) {
  writeFileSync(join(out, `${name}.gz`), gzipSync(readFileSync(join(out, name)), { level: 9 }));
}

/** Return the licences of all packages whose code is in the bundle or beside it. */
function notices() {
  const used = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  const names = used.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean);
  const all = [...new Set([...names, "swagger-ui-dist"])].sort();
  const head = "The pages contain code of these packages: the API page uses swagger-ui-dist, the researcher's pages use uplot.\n";
  return [head, ...all.map(notice)].join(`\n${"-".repeat(78)}\n\n`);
}

function notice(name) {
  const folder = join(here, "node_modules", name);
  const { version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = files.map((file) => readFileSync(join(folder, file), "utf8").trim());
  if (!texts.length && license !== "MIT") throw new Error(`Package ${name} contains no text of its licence ${license}.`);
  return [`${name} ${version}: ${license}`, ...(texts.length ? texts : [mitLicence(author?.name ?? author)])].join("\n\n");
}

/** Return the MIT licence with this author, for packages that name it without its text; our own licence is the template. */
function mitLicence(author) {
  const ours = readFileSync(join(here, "../LICENSE"), "utf8").trim();
  return ours.replace(/^Copyright.*$/m, `Copyright (c) ${author}`);
}
