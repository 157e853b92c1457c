// A live draft in VS Code: seen while it denoises, accepted in whole and in part, undone at once.

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

/** The draft of AREA's second line is ready; nothing is in the file. */
async function drafted(options: Partial<Opened> = {}): Promise<void> {
  await open(options);
  await window.select(2, 5);
  await window.press("Alt+i", "Alt+i");
  await window.see(() => window.status(), (text) => text.includes("draft ready"));
}

test("the draft is seen getting clearer, and the file stays as it is until the accept", async () => {
  await open({ pauseMs: 700 });
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
  await window.see(() => window.drawnText(), (text) => text === "return math.pi * r ** 2");
  const [last] = await window.see(() => window.drawn(), (lines) => lines[0]?.every((run) => !run.italic) ?? false);
  // Open, draft and stable differ in shape, not in colour alone.
  assert.ok(half?.some((run) => run.italic) && half.some((run) => /^░+$/.test(run.text)));
  assert.equal(last?.length, 1);
  assert.equal(await window.text(), AREA);
  assert.equal(await window.dirty(), false);
  assert.equal(window.onDisk, AREA);
  assert.deepEqual(await window.notifications(), []);
});
