// Draws the page's icons from its one drawing, web/public/favicon.svg: `node e2e/icons.mjs`. For masks and for iOS the
// ground goes to the edges and the drawing stays within the circle that every mask leaves (0.8 of the side).

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const out = fileURLToPath(new URL("../web/public/", import.meta.url));
const drawing = readFileSync(join(out, "favicon.svg"), "utf8");
const inner = /<svg[^>]*>(.*)<\/svg>/s.exec(drawing)[1];
const ground = /<rect[^>]*\/>/.exec(inner)[0];
const full = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${ground.replace(/rx="[^"]*"/, 'rx="0"')}<g transform="translate(16 16) scale(.78) translate(-16 -16)">${inner.replace(ground, "").replace("M17 0v32", "M17 -8v48")}</g></svg>`;

const browser = await chromium.launch({ executablePath: process.env.PURPLEMUX_BROWSER ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const [name, size, svg] of [["icon-192", 192, drawing], ["icon-512", 512, drawing], ["icon-mask-192", 192, full], ["icon-mask-512", 512, full], ["icon-ios-180", 180, full]]) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  await page.setContent(`<style>body{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${svg}`);
  writeFileSync(join(out, `${name}.png`), await page.screenshot({ omitBackground: true }));
  await page.close();
}
await browser.close();
