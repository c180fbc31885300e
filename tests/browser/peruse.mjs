// Opens a site from disk as readers do, and writes what it saw as JSON. Arguments: a folder with node_modules, a task.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, taskFile] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const task = JSON.parse(readFileSync(taskFile, "utf8"));
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: task.chromium, args: flags });
const url = (name) => new URL(`file://${task.site}/${name}`).href;

async function opened(options, name) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: false, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => { faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) faults.push(`request: ${request.url()}`); });
  page.on("requestfailed", (request) => faults.push(`failed: ${request.url()}`));
  const start = Date.now();
  await page.goto(url(name), { waitUntil: "load" });
  return { context, page, faults, milliseconds: Date.now() - start };
}

const pageFacts = (page) => page.evaluate(() => ({
  claims: Object.fromEntries([...document.querySelectorAll("[data-claim]")].map((e) =>
    [e.dataset.claim, e.querySelector(".chip").innerText.trim()])),
  papers: Object.fromEntries([...document.querySelectorAll("tr[data-verdict]")].map((e) =>
    [e.id, e.querySelector(".chip").innerText.trim()])),
  links: [...document.querySelectorAll("a[href]")].map((a) => a.href),
  dead: [...document.querySelectorAll("a[href^='#']")].map((a) => a.getAttribute("href").slice(1))
    .filter((id) => !document.getElementById(id)),
  blank: [...document.images].filter((i) => !i.complete || !i.naturalWidth).map((i) => i.src),
  silent: [...document.images].filter((i) => !i.alt.trim()).map((i) => i.src),
  headings: [...document.querySelectorAll("h1,h2,h3,h4")].map((h) => Number(h.tagName[1])),
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
}));

async function checked(page) {
  await page.evaluate(axe);  // through the debugger, so that the page's own policy stays in force
  return page.evaluate(async () => (await axe.run(document)).violations.map((v) =>
    ({ id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)) })));
}

const seen = { pages: [], axe: [] };
for (const name of task.pages) {
  for (const [width, scheme] of [[1280, "light"], [390, "dark"]]) {
    const { context, page, faults, milliseconds } = await opened({ viewport: { width, height: 900 }, colorScheme: scheme }, name);
    seen.pages.push({ name, width, scheme, milliseconds, ...(await pageFacts(page)), faults });
    if (task.screenshots) {
      await page.screenshot({ path: join(task.screenshots, `${name.replaceAll("/", "_")}.${width}.${scheme}.png`), fullPage: true });
    }
    await context.close();
  }
}

for (const [name, scheme] of task.axe.flatMap((name) => [[name, "light"], [name, "dark"]])) {
  const { context, page } = await opened({ colorScheme: scheme }, name);
  await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  seen.axe.push({ name, scheme, violations: await checked(page) });
  await context.close();
}

if (task.index) {
  const { context, page, faults } = await opened({}, task.index);
  const shown = () => page.$$eval("tr[data-verdict]", (rows) => rows.filter((r) => !r.hidden).map((r) => r.id));
  const column = async (n) => page.$$eval("tr[data-verdict]", (rows, at) => rows.map((r) => r.cells[at].dataset.key), n);
  seen.sorted = {};
  for (let n = 0; n < 7; n += 1) {
    const button = page.locator("thead button").nth(n);
    await button.click();
    const up = await column(n);
    await button.focus();
    await page.keyboard.press("Enter");
    seen.sorted[n] = [up, await column(n), await page.locator("thead th").nth(n).getAttribute("aria-sort")];
  }
  seen.picked = {};
  for (const pick of await page.locator("[data-pick]").all()) {
    await pick.click();
    seen.picked[await pick.getAttribute("data-pick")] = await shown();
    await pick.click();
  }
  await page.fill("[data-find]", task.find);
  seen.found = await shown();
  await page.fill("[data-find]", "no paper says this");
  seen.nothing = [await shown(), await page.locator("[data-empty]").isVisible(), await page.locator("[data-count]").innerText()];
  await page.locator("[data-clear]").click();
  seen.cleared = await shown();
  await page.reload();
  await page.keyboard.press("Tab");
  seen.first = await page.evaluate(() => document.activeElement.innerText);
  seen.indexFaults = faults;
  await context.close();

  const plain = await opened({ javaScriptEnabled: false }, task.index);
  seen.plain = {
    rows: await plain.page.locator("tr[data-verdict]").count(),
    tools: await plain.page.locator("[data-tools]").isVisible(),
    buttons: await plain.page.locator("thead button").count(),
  };
  await plain.context.close();
}
await browser.close();
writeFileSync(task.out, JSON.stringify(seen));
