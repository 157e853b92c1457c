// A live draft in VS Code: seen while it denoises, accepted in whole and in part, undone at once. A number
// behind "complaint" is one of tests/test_complaints.py.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Code, type Opened, type Window } from "./code.ts";

const code = new Code();
let window: Window;
before(() => code.start());
after(() => code.stop());
afterEach(() => window.close());

const AREA = "def area(r):\n    return 3.14 * r * r\n";
const STEPS = ["░░░░░░░░░", "return ░░░░░ * r", "return math.pi * r", "return math.pi * r ** 2"];
const AFTER = "def area(r):\n    return math.pi * r ** 2\n";

async function open(options: Partial<Opened> = {}): Promise<void> {
  window = await code.open({ files: { "a.py": AREA }, runs: [[STEPS]], ...options });
  await window.see(() => window.status(), (text) => /ready|idle/.test(text));
}

async function becomes(text: string): Promise<void> {
  await window.see(() => window.text(), (seen) => seen === text);
}

async function ready(): Promise<void> {
  await window.see(() => window.status(), (text) => text.includes("draft ready"));
}

/** The draft of AREA's second line is ready; nothing is in the file. */
async function drafted(options: Partial<Opened> = {}): Promise<void> {
  await open(options);
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await ready();
}

/** The file is as it was, on the screen and on the disk, and nobody was interrupted. */
async function untouched(text = AREA): Promise<void> {
  assert.equal(await window.text(), text);
  assert.equal(await window.dirty(), false);
  assert.equal(window.onDisk, text);
  assert.deepEqual(await window.notifications(), []);
}

test("the draft is seen getting clearer, and the file stays as it is (complaint 2, complaint 5)", async () => {
  await open({ pauseMs: 1500 });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.drawnText(), (text) => text === "░░░░░░░░░");
  const [half] = await window.see(
    () => window.drawn(),
    (lines) => lines[0]?.map((run) => run.text).join("") === "return ░░░░░ * r",
  );
  assert.equal(await window.struck(), "return 3.14 * r * r");
  assert.match(await window.status(), /drafting 2\/4/);
  assert.match(await window.statusWords(), /Frostline is drafting, step 2 of 4/);
  await window.see(() => window.lenses(), (text) => /^Accept What Is Stable\s\|\sReject$/.test(text));
  const heights = await window.heights();
  await window.see(() => window.drawnText(), (text) => text === "return math.pi * r ** 2");
  const [last] = await window.see(() => window.drawn(), (lines) => lines[0]?.every((run) => !run.italic) ?? false);
  // Open, draft and stable differ in shape, not in colour alone.
  assert.ok(half?.some((run) => run.italic) && half.some((run) => /^░+$/.test(run.text)));
  assert.equal(last?.length, 1);
  await window.see(() => window.lenses(), (text) => /Accept\s\|\sLine/.test(text));
  assert.deepEqual(await window.heights(), heights, "neither a lens nor a line has moved");
  await untouched();
});

test("an accept is one edit and one undo step (complaint 1)", async () => {
  await drafted();
  await window.press("Alt+Enter");
  await becomes(AFTER);
  await window.see(() => window.dirty(), (dirty) => dirty);
  await window.see(() => window.drawnText(), (text) => text === "");
  await window.press("Control+z");
  await becomes(AREA);
  await window.see(() => window.dirty(), (dirty) => !dirty);
  await window.press("Control+y");
  await becomes(AFTER);
});

test("a word, a line and the rest are accepted one by one, each one undo step", async () => {
  const text = "def f(r):\n    ...\n";
  await open({ files: { "a.py": text }, runs: [[["░", "a = math.pi\n    return a * r"]]] });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await ready();
  await window.press("Alt+i", "Alt+w");
  await window.see(() => window.text(), (seen) => /\n    a ?\.\.\.\n/.test(seen));
  await window.press("Alt+i", "Alt+l");
  await window.see(() => window.text(), (seen) => /\n    a = math\.pi\n? *\.\.\./.test(seen));
  await window.press("Alt+Enter");
  const whole = "def f(r):\n    a = math.pi\n    return a * r\n";
  await becomes(whole);
  await window.press("Control+z");
  await window.see(() => window.text(), (seen) => /\n    a = math\.pi\n? *\.\.\./.test(seen));
  await window.press("Control+z");
  await window.see(() => window.text(), (seen) => /\n    a ?\.\.\.\n/.test(seen));
  await window.press("Control+z");
  await becomes(text);
});

test("what is stable is accepted while the rest goes on", async () => {
  await open({ pauseMs: 1500 });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.status(), (text) => text.includes("drafting 3/4"));
  await window.press("Alt+i", "Alt+s");
  await window.see(() => window.dirty(), (dirty) => dirty);
  await ready();
  await window.press("Alt+Enter");
  await becomes(AFTER);
});

test("two holes are one draft; one is accepted by itself, by its code lens", async () => {
  const text = "a = 1\nx = 0\nb = 2\n";
  await open({ files: { "a.py": text }, runs: [[["░", "one"], ["░", "two"]]] });
  await window.goto(1, 5);
  await window.press("Shift+End");
  await window.page.keyboard.down("Alt");
  await window.page.locator(".view-line", { hasText: "b = 2" }).first().dblclick({ position: { x: 38, y: 8 } });
  await window.page.keyboard.up("Alt");
  await window.press("Alt+i", "Alt+i");
  await ready();
  await window.see(() => window.drawnText(), (seen) => seen === "one\ntwo");
  await window.see(() => window.lenses(), (seen) => seen.includes("Accept All"));
  await window.page.locator(".codelens-decoration a", { hasText: "Accept This Hole" }).last().click();
  await becomes("a = 1\nx = 0\nb = two\n");
  await window.goto(2, 1);
  await window.press("Control+z");
  await becomes(text);
});

test("a rejected draft leaves text and undo history as they were (complaint 18)", async () => {
  await drafted();
  await window.press("ArrowRight", "Escape"); // the first key ends the selection
  await window.see(() => window.drawnText(), (text) => text === "");
  await untouched();
  await window.press("Control+z");
  await untouched();
});

test("typing above and below the hole goes on while it denoises, and the draft moves along", async () => {
  const unending = [STEPS[0] ?? "", ...Array<string>(2000).fill(STEPS[1] ?? "")];
  await open({ runs: [[unending]] });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.drawnText(), (text) => text === "return ░░░░░ * r");
  await window.goto(3, 1);
  await window.type("# end");
  await window.goto(1, 1);
  await window.type("# pi\n");
  await window.see(() => window.struck(), (text) => text === "return 3.14 * r * r");
  assert.equal(await window.drawnText(), "return ░░░░░ * r");
  assert.match(await window.status(), /drafting/);
  await window.press("Alt+i", "Alt+s");
  // What is stable comes before the old text, which the rest is for.
  await becomes("# pi\ndef area(r):\n    return return 3.14 * r * r\n# end");
});

test("what is typed inside a hole is kept, and it denoises on at both sides", async () => {
  const unending = Array<string>(2000).fill("░░░");
  await open({ runs: [[unending], [["x + "], [" + y"]]] });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.drawnText(), (text) => text === "░░░");
  await window.goto(2, 12);
  await window.type("mine");
  await ready();
  await window.press("Alt+Enter");
  await becomes("def area(r):\n    x + mine + y\n");
  await window.press("Control+z");
  await becomes("def area(r):\n    return mine3.14 * r * r\n");
});

test("a long rewrite goes block by block: the next one is drafted when the one before is in the file", async () => {
  const old = (name: string): string => `def ${name}():\n${"    x = 1\n".repeat(9)}`;
  const now = (name: string): string => `def ${name}():\n    return 2`;
  const text = `${old("f")}\n${old("g")}`;
  await open({ files: { "a.py": text }, runs: [[["░", now("f")]], [["░", now("g")]]] });
  await window.press("Control+a", "Alt+i", "Alt+i");
  await window.see(() => window.drawnText(), (seen) => seen === now("f"));
  await ready();
  await window.press("Alt+Enter");
  await window.see(() => window.drawnText(), (seen) => seen === now("g"));
  await window.see(() => window.text(), (seen) => seen.includes(`${now("f")}\n`) && seen.includes(old("g")));
  await ready();
  await window.press("Alt+Enter");
  await window.see(() => window.drawnText(), (seen) => seen === "");
  const both = await window.text();
  assert.ok(both.startsWith(now("f")) && both.trimEnd().endsWith(now("g")) && !both.includes("x = 1"), both);
  await window.press("Control+z");
  await window.see(() => window.text(), (seen) => seen.includes(`${now("f")}\n`) && seen.includes(old("g")));
  await window.press("Control+z", "Control+Home");
  await becomes(text);
});

test("in a file of 20,000 lines a draft near its end is as in any other (complaint 24)", async () => {
  const many = "value = 1\n".repeat(20_000);
  await open({ files: { "a.py": `${many}${AREA}` } });
  await window.select(20_002, 5);
  await window.press("Alt+i", "Alt+i");
  await ready();
  assert.equal(await window.drawnText(), STEPS.at(-1));
  assert.equal(await window.dirty(), false);
  await window.press("Alt+Enter");
  await window.see(() => window.dirty(), (dirty) => dirty);
  await window.press("Control+s");
  await window.see(async () => window.onDisk === `${many}${AFTER}`, (same) => same);
  await window.see(() => window.dirty(), (dirty) => !dirty); // an undo while it saves can be lost
  await window.press("Control+z");
  await window.see(() => window.dirty(), (dirty) => dirty);
  await window.press("Control+s");
  await window.see(async () => window.onDisk === `${many}${AREA}`, (same) => same);
});

test("another draft, one with an instruction, and back (complaint 3)", async () => {
  const runs = [[["░", "return 1"]], [["░", "return 2"]], [["░", "return 3"]]];
  await drafted({ runs });
  await window.press("Alt+i", "Alt+n");
  await window.see(() => window.drawnText(), (text) => text === "return 2");
  await ready();
  await window.press("Alt+i", "Alt+e");
  await window.page.locator(".quick-input-box input").fill("40");
  await window.press("Enter");
  await window.see(() => window.drawnText(), (text) => text === "return 3");
  await ready();
  await window.press("Alt+i", "Alt+z");
  await window.see(() => window.drawnText(), (text) => text === "return 2");
  await untouched();
});

test("a part that is selected in the draft is pinned, and the rest denoised again", async () => {
  const runs = [[["░", "return math.pi"]], [["░", " tau"]]];
  await drafted({ runs });
  await window.press("Alt+i", "Alt+p"); // opens the draft at the right
  const right = window.page.locator(".editor.modified .view-lines");
  await right.locator(".view-line", { hasText: "return math.pi" }).first().waitFor();
  await right.locator(".view-line", { hasText: "return math.pi" }).first().dblclick({ position: { x: 50, y: 8 } });
  await window.press("Alt+i", "Alt+p");
  await right.locator(".view-line", { hasText: "return tau" }).first().waitFor();
  assert.equal(window.onDisk, AREA);
});

test("a tall draft opens as a diff beside the file, without taking the focus (complaint 25)", async () => {
  const tall = "a = 1\n    b = 2\n    return a + b";
  await drafted({ runs: [[["░", tall]]] });
  const right = window.page.locator(".editor.modified .view-lines");
  await right.locator(".view-line", { hasText: "return a + b" }).first().waitFor();
  await window.see(() => window.drawnText(), (text) => text.includes("2 more lines"));
  await untouched();
  await window.press("Alt+Enter"); // the keys still go to the file
  await window.see(async () => window.onDisk === AREA && (await window.dirty()), (dirty) => dirty);
  await window.see(async () => right.count(), (count) => count === 0);
  await becomes(`def area(r):\n    ${tall}\n`);
  await window.press("Control+z");
  await becomes(AREA);
});

test("every draft opens as a diff where that is the user's choice, and the diff gets clearer too", async () => {
  await open({ machine: { "frostline.view": "diff" }, pauseMs: 700 });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  const right = window.page.locator(".editor.modified .view-lines");
  await right.locator(".view-line", { hasText: "math.pi" }).first().waitFor();
  await right.locator(".view-line", { hasText: "return math.pi * r ** 2" }).first().waitFor();
  await ready();
  await untouched();
  await window.press("ArrowRight", "Escape"); // the first key ends the selection
  await window.see(async () => right.count(), (count) => count === 0);
});

test("a server that is killed leaves the file as it was, and comes back (complaint 11)", async () => {
  await open({ pauseMs: 1500 });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.drawnText(), (text) => text !== "");
  const pid = code.serverPid;
  code.play([[STEPS]]);
  code.killServer();
  await window.see(() => window.drawnText(), (text) => text === "");
  await untouched();
  await window.see(() => window.status(), (text) => /ready|idle/.test(text));
  assert.notEqual(code.serverPid, pid);
  await window.press("Alt+i", "Alt+i");
  await ready();
  await window.press("Alt+Enter");
  await becomes(AFTER);
});

test("a file with CRLF keeps its line ends (complaint 7)", async () => {
  const text = "def f(r):\r\n    ...\r\n";
  await open({ files: { "a.py": text }, runs: [[["░", "a = 'é😀'\n    return a"]]] });
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await ready();
  await window.press("Alt+Enter");
  await window.see(() => window.dirty(), (dirty) => dirty);
  await window.press("Control+s");
  await window.see(async () => window.onDisk, (seen) => seen === "def f(r):\r\n    a = 'é😀'\r\n    return a\r\n");
});

test("keys are the editor's own while no draft is shown, and Tab always is (complaint 14)", async () => {
  await open();
  await window.goto(1, 1);
  await window.press("Tab");
  await becomes(`    ${AREA}`);
  await window.press("Control+z");
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await ready();
  await window.goto(1, 1);
  await window.press("Tab");
  await becomes(`    ${AREA}`);
});
