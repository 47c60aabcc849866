#!/usr/bin/env bash
# Makes the console's one vendored file from npm: Preact, htm, signals and uPlot, with their licences and hashes.
set -eu
target=$(cd "$(dirname "$0")/.." && pwd)/src/barnabas/console/static/vendor
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund preact@11.2.0 htm@3.1.1 @preact/signals@2.11.4 uplot@1.6.32 esbuild@0.28.2
cat >entry.js <<'END'
export { render } from "preact";
export { useState, useEffect, useRef } from "preact/hooks";
export { signal } from "@preact/signals";
export { default as uPlot } from "uplot";
import { h } from "preact";
import htm from "htm";
export const html = htm.bind(h);
END
npx esbuild entry.js --bundle --minify --format=esm --legal-comments=none --outfile="$target/ui.js"
cp node_modules/uplot/dist/uPlot.min.css "$target/uplot.css"
for name in preact htm @preact/signals @preact/signals-core uplot; do
  echo "$name $(node -p "require('./node_modules/$name/package.json').version")"
  echo; cat "node_modules/$name/LICENSE"; echo
done >"$target/LICENSES.txt"
(cd "$target" && sha256sum ui.js uplot.css >SHA256SUMS)
