// Where a draft can be: a workspace that is not trusted, a document that is no file yet, a theme of high
// contrast. A number behind "complaint" is one of tests/test_complaints.py.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Code, type Drawn, type Opened, type Window } from "./code.ts";

const code = new Code();
let window: Window;
before(() => code.start({ trust: false }));
after(() => code.stop());
afterEach(() => window.close());

const AREA = "def area(r):\n    return 3.14 * r * r\n";
const NOW = "return math.pi * r ** 2";

async function open(options: Partial<Opened> = {}): Promise<void> {
  window = await code.open({ files: { "a.py": AREA }, runs: [[["░░░", NOW]]], ...options });
  await window.see(() => window.status(), (text) => /ready|idle/.test(text));
}

async function becomes(text: string): Promise<void> {
  await window.see(() => window.text(), (seen) => seen === text);
}

async function ready(): Promise<void> {
  await window.see(() => window.status(), (text) => text.includes("draft ready"));
}

test("a workspace that is not trusted gets drafts and sets nothing; once it is trusted, it does", async () => {
  const given = { "frostline.exclude": ["a.py"], "frostline.view": "indicator", "frostline.command": ["/bin/false"] };
  await open({ files: { "a.py": AREA, ".vscode/settings.json": JSON.stringify(given) } });
  const pid = code.serverPid;
  assert.notEqual(pid, undefined);
  await window.see(() => window.statusText("status.workspaceTrust"), (text) => text.includes("Restricted Mode"));
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await ready();
  assert.equal(await window.drawnText(), NOW);
  await window.press("ArrowRight", "Escape");
  await window.see(() => window.drawnText(), (text) => text === "");

  await window.command("Workspaces: Manage Workspace Trust");
  await window.page.locator(".workspace-trust-buttons-row .monaco-button", { hasText: "Trust" }).first().click();
  await window.see(() => window.statusText("status.workspaceTrust"), (text) => text === "");
  await window.page.locator(".monaco-modal-editor-block .codicon-close").last().click(); // it lies over the file
  await window.focus();
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(
    async () => window.page.locator(".part.statusbar").textContent(),
    (text) => /Frostline: .*exclude/i.test(text ?? ""),
  );
  assert.equal(await window.drawnText(), "");
  // Which program is the server is no workspace's business, trusted or not.
  assert.equal(code.serverPid, pid);
  assert.equal(await window.text(), AREA);
});

test("a document that is no file yet has drafts like any other (complaint 15)", async () => {
  await open({ runs: [[["░░░", "max(a, b)"]]] });
  await window.command("File: New Untitled Text File");
  await window.see(() => window.text(), (text) => !text.includes("area"));
  await window.press("Control+k", "m"); // the language of the document
  await window.page.locator(".quick-input-box input").fill("Python");
  await window.press("Enter");
  await window.see(() => window.statusText("status.editor.mode"), (text) => text === "Python");
  await window.type("value = 3");
  await window.select(1, 9);
  await window.press("Alt+i", "Alt+i");
  await ready();
  assert.equal(await window.drawnText(), "max(a, b)");
  assert.equal(await window.text(), "value = 3");
  await window.see(() => window.lenses(), (text) => text.includes("Accept"));
  await window.press("Alt+Enter");
  await becomes("value = max(a, b)");
  await window.press("Control+z");
  await becomes("value = 3");
});

/** Return red, green and blue of a colour as it is on paper, 0 to 1. */
function seen(colour: string, paper: readonly number[]): readonly number[] {
  const [red = 0, green = 0, blue = 0, opaque = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return [red, green, blue].map((part, index) => (part / 255) * opaque + (paper[index] ?? 0) * (1 - opaque));
}

/** Return how far apart two colours are, 1 to 21, as WCAG 2 reckons it. */
function contrast(colour: string, paper: string): number {
  const behind = seen(paper, []);
  const [dark = 0, bright = 0] = [behind, seen(colour, behind)]
    .map((parts) => parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)))
    .map(([red = 0, green = 0, blue = 0]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue)
    .sort((one, other) => one - other);
  return (bright + 0.05) / (dark + 0.05);
}

for (const theme of ["Default High Contrast", "Default High Contrast Light"]) {
  test(`in ${theme} all of a draft can be read, and its parts are told apart`, async () => {
    await open({
      settings: { "workbench.colorTheme": theme },
      runs: [[["░░░░░░░░░", "return ░░░░░ * r", NOW]]],
      pauseMs: 1500,
    });
    await window.select(2, 5);
    await window.press("Alt+i", "Alt+i");
    const [half = []] = await window.see(
      () => window.drawn(),
      (lines) => lines[0]?.map((run) => run.text).join("") === "return ░░░░░ * r",
    );
    const [last = []] = await window.see(() => window.drawn(), (lines) => lines[0]?.every((run) => !run.italic) ?? false);
    const paper = await window.paper();
    for (const run of [...half, ...last]) {
      assert.ok(contrast(run.color, paper) >= 7, `${JSON.stringify(run)} on ${paper}`);
    }
    const kinds = (runs: readonly Drawn[]): Set<string> =>
      new Set(runs.map((run) => `${/░/.test(run.text) ? "shade" : run.italic ? "slanted" : "upright"}, ${run.frame}`));
    assert.deepEqual(kinds(half), new Set(["slanted, dotted", "shade, none"]));
    assert.deepEqual(kinds(last), new Set(["upright, solid"]), "framed, as the file's own text is upright too");
    assert.equal(await window.struck(), "return 3.14 * r * r");
  });
}
