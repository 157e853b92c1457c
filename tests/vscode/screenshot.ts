// The picture of the README: VS Code in the middle of a real draft of the embedded model.
//
//   tests/vscode/run --screenshot

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { Code } from "./code.ts";

const PICTURE = join(import.meta.dirname, "..", "..", ".github", "vscode.png");
const FILE = `import math


def area(radius):
    result = 3.14 * radius * radius
    return result


def volume(radius, height):
    result = area(radius) * height
    return round(result, 2)
`;

const code = new Code();
await code.start();
try {
  const window = await code.open({ files: { "shapes.py": FILE }, settings: { "frostline.strength": 1 } });
  await window.page.setViewportSize({ width: 900, height: 420 });
  await window.press("Control+b");
  await window.see(() => window.status(), (text) => text.includes("idle"));
  await window.command("Frostline: Load the Model Now");
  await window.see(() => window.status(), (text) => text.includes("ready"));
  await window.select(5, 5);
  await window.select(5, 5, 1);
  await window.press("Alt+i", "Alt+i");
  const pictures: Buffer[] = [];
  // A step is as quick as it is, so pictures are taken until the draft is ready, and the middle one is kept.
  for (let status = ""; !status.includes("draft ready"); status = await window.status()) {
    const before = await window.drawnText();
    const picture = await window.page.screenshot();
    if (before.includes("░") && (await window.status()).includes("drafting")) {
      pictures.push(picture);
    }
  }
  const picture = pictures[Math.floor(pictures.length / 2)];
  if (picture === undefined) {
    throw new Error("the draft was ready before there was a picture of it");
  }
  writeFileSync(PICTURE, picture);
  console.log(`${PICTURE}: ${Math.round(picture.length / 1024)} KB, one of ${pictures.length}`);
} finally {
  await code.stop();
}
