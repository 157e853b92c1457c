// Around a draft: the status bar, settings that change, ghost text, what is said, trust, and the server
// that is not there. A number behind "complaint" is one of tests/test_complaints.py.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";

import { Code, type Opened, type Window } from "./code.ts";

const code = new Code();
let window: Window;
before(() => code.start());
after(() => code.stop());
afterEach(() => window.close());

const LINE = "value = max(, 1)\n";
const RUN = [[["░░░░", "be░░", "best"]]];

async function open(options: Partial<Opened> = {}): Promise<void> {
  window = await code.open({ files: { "a.py": LINE }, runs: RUN, ...options });
}

async function up(): Promise<void> {
  await window.see(() => window.status(), (text) => /ready|idle/.test(text));
}

async function becomes(text: string): Promise<void> {
  await window.see(() => window.text(), (seen) => seen === text);
}

/** What is drawn as ghost text, whose brackets are drawn by themselves. */
const ghost = async (): Promise<string> => (await window.ghost()).replace(/\n/g, "");

test("off starts no server; turned on and off again it changes at once (complaint 10)", async () => {
  const starts = (): string => (existsSync(code.path("starts")) ? readFileSync(code.path("starts"), "utf8") : "");
  const before = starts();
  await open({ machine: { "frostline.enabled": false } });
  await window.see(() => window.status(), (text) => text.includes("Frostline: off"));
  assert.equal(starts(), before);
  code.set({});
  await up();
  assert.equal(starts(), `${before}x\n`);
  code.set({}, { "frostline.enabled": false });
  await window.see(() => window.status(), (text) => text.includes("Frostline: off"));
});

test("the embedded model loads with the first draft, with what is done of it, and stays ready", async () => {
  await open({ runs: undefined, files: { "a.py": "def area(radius):\n    return 3.14 * radius\n" } });
  await window.see(() => window.status(), (text) => text.includes("idle"));
  await window.page.evaluate(() => {
    const seen: string[] = [];
    (globalThis as unknown as { seen: string[] }).seen = seen;
    const note = (): unknown => seen.push(document.querySelector('.statusbar-item[id*="frostline.status"]')?.textContent ?? "");
    const bar = document.querySelector(".part.statusbar");
    new MutationObserver(note).observe(bar as Element, { subtree: true, childList: true, characterData: true });
  });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.status(), (text) => text.includes("draft ready"));
  const seen = await window.page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen);
  const shares = seen.flatMap((text) => /Frostline: loading (\d+) %/.exec(text)?.[1] ?? []).map(Number);
  assert.ok(shares.length > 0, seen.join(" | "));
  assert.deepEqual(shares, [...shares].sort((one, other) => one - other));
  assert.ok(seen.some((text) => /drafting \d+\/\d+/.test(text)), seen.join(" | "));
  await window.press("ArrowRight", "Escape");
  await window.see(() => window.status(), (text) => text.includes("Frostline: ready"));
  assert.match(await window.statusWords(), /embedded on cpu, \d+ MiB/);
});

test("a worker that is killed in the middle of a draft is told as lost, with the file as it was, and the next draft has another", async () => {
  const text = "def area(radius):\n    return 3.14 * radius\n";
  // So many slots, settled one by one, that it is far from done when it is killed.
  await open({ runs: undefined, files: { "a.py": text }, machine: { "frostline.length": 64, "frostline.threshold": 0 } });
  await up();
  const server = code.serverPid;
  await window.goto(2, 12);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.status(), (seen) => /drafting \d+\/\d+/.test(seen));
  code.killWorker();
  await window.see(() => window.status(), (seen) => seen.includes("Frostline: lost"));
  await window.see(() => window.drawnText(), (seen) => seen === "");
  assert.equal(await window.text(), text);
  assert.equal(await window.dirty(), false);
  assert.equal(window.onDisk, text);
  assert.deepEqual(await window.notifications(), []);
  code.set({});
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.status(), (seen) => seen.includes("draft ready"));
  assert.equal(code.serverPid, server);
});

test("where there is no server the status says so, and what to do", async () => {
  await open({ machine: { "frostline.command": ["/nowhere/frostline", "lsp"] } });
  await window.see(() => window.status(), (text) => text.includes("not installed"));
  assert.match(await window.statusWords(), /"\/nowhere\/frostline" of the setting frostline.command is not there/);
  assert.deepEqual(await window.notifications(), []);
  await window.page.locator('.statusbar-item[id*="frostline.status"]').click();
  const menu = window.page.locator(".quick-input-list .monaco-list-row");
  await menu.filter({ hasText: "Install the Server" }).first().waitFor();
  await menu.filter({ hasText: "Show the Output" }).first().click();
  const output = window.page.locator(".output-view-container .view-line, .panel .view-line", { hasText: "/nowhere/frostline" });
  await output.first().waitFor();
  code.set({});
  await up();
});

test("without a server in PATH nothing is guessed from a registry: one sentence says what to do, and it is installed from what is named", async () => {
  code.takeAway();
  await open();
  await window.see(() => window.status(), (text) => text.includes("not installed"));
  assert.match(await window.statusWords(), /Run `pip install '\.\[local\]'` in the folder with Frostline's sources/);
  assert.deepEqual(await window.notifications(), []);
  await window.command("Frostline: Install the Server");
  const asked = await window.see(() => window.notifications(), (all) => all.length > 0);
  assert.match(asked.join(), /^Frostline does not know what to install\. Set frostline\.package/);
  await window.command("Notifications: Clear All Notifications");
  code.set({}, { "frostline.package": code.wheel() });
  await window.command("Frostline: Install the Server");
  await up();
  code.putBack();
});

test("ghost text comes when it is asked for, and is taken word by word from what is known (complaint 20)", async () => {
  await open({ runs: [[["░", "best.of(all)"]], [["░", "another"]]] });
  await up();
  await window.goto(1, 13);
  await window.press("F9");
  await window.see(ghost, (text) => text.includes("best.of(all)"));
  assert.equal(await window.dirty(), false);
  await window.press("Control+ArrowRight");
  await window.see(() => window.text(), (text) => text.startsWith("value = max(best"));
  await window.see(ghost, (text) => text.includes("of(all)") && !text.includes("best"));
  await window.press("Tab");
  await becomes("value = max(best.of(all), 1)\n");
});

test("ghost text that is typed along is not written twice (complaint 19)", async () => {
  await open({ runs: [[["░", "best.of(all)"]]] });
  await up();
  await window.goto(1, 13);
  await window.press("F9");
  await window.see(ghost, (text) => text.includes("best.of(all)"));
  await window.page.keyboard.type("best"); // as fast as it can be, and taken at once
  await window.press("Tab");
  await becomes("value = max(best.of(all), 1)\n");
});

test("ghost text in auto comes by typing, not by Backspace (complaint 6, complaint 24)", async () => {
  await open({ runs: [[["░", "first"]], [["░", "second"]], [["░", "third"]]], settings: { "frostline.ghostText": "auto" } });
  await up();
  await window.goto(1, 13);
  await window.press("Backspace");
  await becomes("value = max, 1)\n");
  // What Backspace asks for would play the first, before this draft does.
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.status(), (text) => text.includes("draft ready"));
  assert.equal(await window.drawnText(), "first");
  assert.equal(await window.ghost(), "");
  await window.press("Escape");
  await window.see(() => window.drawnText(), (text) => text === "");
  await window.type("(");
  await window.see(() => window.ghost(), (text) => text.includes("second"));
  await window.press("Escape");
  await window.see(() => window.ghost(), (text) => text === "");
});

test("indicator draws nothing, and the status says how the draft is (complaint 21, complaint 24)", async () => {
  await open({ machine: { "frostline.view": "indicator", "frostline.codeLens": false } });
  await up();
  await window.goto(1, 13);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.status(), (text) => text.includes("draft ready"));
  assert.equal(await window.drawnText(), "");
  assert.equal(await window.lenses(), "");
  code.set({}); // a setting counts at once
  await window.see(() => window.drawnText(), (text) => text === "best");
  await window.see(() => window.lenses(), (text) => text.includes("Accept"));
});

test("a draft is announced to a screen reader, and to whoever wishes it", async () => {
  await open({ settings: { "editor.accessibilitySupport": "on" }, runs: [[["best"]], [["rest"]], [["test"]]] });
  await up();
  await window.goto(1, 13);
  await window.press("Alt+i", "Alt+i");
  const said = async (): Promise<boolean> => (await window.notifications()).some((text) => text.includes("The draft is ready"));
  await window.see(said, (ready) => ready);
  await window.command("Notifications: Clear All Notifications");
  await window.see(said, (still) => !still);
  await window.see(() => window.lenses(), (text) => text.includes("Accept"));
  code.set({}, { "frostline.announce": "off", "frostline.codeLens": false });
  await window.see(() => window.lenses(), (text) => text === ""); // so the other setting counts as well
  await window.press("Alt+i", "Alt+n");
  await window.see(() => window.drawnText(), (text) => text === "rest");
  await window.see(() => window.status(), (text) => text.includes("draft ready"));
  assert.equal(await said(), false);
  code.set({}, { "frostline.announce": "on" });
  await window.see(() => window.lenses(), (text) => text !== "");
  await window.press("Alt+i", "Alt+n");
  await window.see(() => window.drawnText(), (text) => text === "test");
  await window.see(said, (ready) => ready);
});

test("an excluded file never gets a draft, and the sentence says why (complaint 23)", async () => {
  await open({ settings: { "frostline.exclude": ["a.py"] } });
  await up();
  await window.goto(1, 13);
  await window.press("Alt+i", "Alt+i");
  await window.see(
    async () => window.page.locator(".part.statusbar").textContent(),
    (text) => /Frostline: .*exclude/i.test(text ?? ""),
  );
  assert.equal(await window.drawnText(), "");
});

test("the walkthrough has its steps", async () => {
  await open();
  await up();
  await window.press("F1");
  await window.page.locator(".quick-input-box input").fill(">Welcome: Open Walkthrough...");
  await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Open Walkthrough" }).first().click();
  const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Start with Frostline" });
  await row.first().click();
  await window.page.locator(".getting-started-step", { hasText: "Take it, in whole or in part" }).first().waitFor();
});
