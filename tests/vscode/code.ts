// Real VS Code for the tests: code-server, driven in chromium as a person would, by keys and by what is on
// the screen. A test opens a window of its own, with a folder and settings of its own.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import type { Browser, Page } from "playwright-core";

/** The folder with code-server and playwright, the packaged extension, and the real `frostline`. */
const HOST = needed("FROSTLINE_VSCODE_HOST");
const VSIX = needed("FROSTLINE_VSIX");
const SERVER = needed("FROSTLINE_COMMAND");
const CHROMIUM = process.env["FROSTLINE_CHROMIUM"] ?? "/usr/bin/chromium";
const PATIENCE_MS = 30_000;

const { chromium } = createRequire(join(HOST, "package.json"))("playwright-core") as typeof import("playwright-core");

function needed(name: string): string {
  const value = process.env[name];
  if (value === undefined) {
    throw new Error(`${name} is not set: start the tests with tests/vscode/run`);
  }
  return value;
}

export type Settings = Record<string, unknown>;
/** For each request, for each gap, its canvases (frostline/wire/scripted.py). */
export type Runs = readonly (readonly (readonly string[])[])[];

export interface Opened {
  /** Files of the folder by name; the first one is opened. */
  readonly files: Record<string, string>;
  /** What the worker plays; without it the embedded model runs. */
  readonly runs?: Runs;
  readonly pauseMs?: number;
  readonly settings?: Settings;
  /** Settings that only a machine has, such as which program is the server. */
  readonly machine?: Settings;
}

const BASE: Settings = {
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "chat.disableAIFeatures": true,
  "editor.minimap.enabled": false,
  // In a browser VS Code saves by itself, and what was put into a file would not show as a change of it.
  "files.autoSave": "off",
  "editor.fontFamily": "DejaVu Sans Mono",
  "security.workspace.trust.startupPrompt": "never",
  "extensions.ignoreRecommendations": true,
  "window.confirmBeforeClose": "never",
};

/** One code-server and one browser, for all windows of a run. */
export class Code {
  private readonly folder = mkdtempSync(join(tmpdir(), "frostline-vscode-"));
  private server: ChildProcess | undefined;
  private browser: Browser | undefined;
  private port = 0;
  private windows = 0;

  async start(options: { trust: boolean } = { trust: true }): Promise<void> {
    for (const name of ["bin", "home", "data/User", "data/Machine", "extensions", "runtime"]) {
      mkdirSync(join(this.folder, name), { recursive: true });
    }
    this.port = await freePort();
    this.shim("bin/frostline");
    // Where the real one is there may be Python as well, and that folder is not in PATH.
    const python = ["python3", "python"].map((name) => join(dirname(SERVER), name)).find(existsSync) ?? "/usr/bin/python3";
    this.script("bin/python3", [`exec '${python}' "$@"`]);
    // VS Code asks the login shell for PATH.
    for (const name of [".profile", ".bash_profile", ".bashrc"]) {
      writeFileSync(join(this.path("home"), name), `export PATH='${this.path("bin")}':"$PATH"\n`);
    }
    // VS Code has no key of its own for this.
    const key = { key: "f9", command: "editor.action.inlineSuggest.trigger", when: "editorTextFocus" };
    writeFileSync(this.path("data/User/keybindings.json"), JSON.stringify([key]));
    const entry = join(HOST, "node_modules", "code-server", "out", "node", "entry.js");
    const folders = ["--extensions-dir", this.path("extensions"), "--user-data-dir", this.path("data")];
    const common = ["--config", this.path("config.yaml"), ...folders];
    await ran(spawn(process.execPath, [entry, ...common, "--install-extension", VSIX], { env: this.env }));
    const flags = ["--auth", "none", "--disable-telemetry", "--disable-update-check"];
    const trust = options.trust ? ["--disable-workspace-trust"] : [];
    const address = ["--bind-addr", `127.0.0.1:${this.port}`, "--reconnection-grace-time", "1"];
    this.server = spawn(process.execPath, [entry, ...common, ...flags, ...trust, ...address], {
      env: this.env,
      stdio: process.env["FROSTLINE_VSCODE_LOG"] === undefined ? "ignore" : "inherit",
      detached: true,
    });
    await until(async () => (await fetch(`http://127.0.0.1:${this.port}/healthz`)).ok, "code-server answers");
    this.browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    if (this.server?.pid !== undefined) {
      process.kill(-this.server.pid, "SIGKILL");
    }
    this.killServer();
    this.workers().forEach((pid) => process.kill(pid, "SIGKILL"));
    // What a killed process still writes is not worth a failure.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }

  async open(options: Opened): Promise<Window> {
    const folder = this.path(`work-${(this.windows += 1)}`);
    mkdirSync(folder);
    const names = Object.keys(options.files);
    for (const [name, text] of Object.entries(options.files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    rmSync(this.path("server.pid"), { force: true });
    this.play(options.runs, options.pauseMs);
    this.set(options.settings ?? {}, options.machine);
    const page = await (this.browser as Browser).newPage({ viewport: { width: 1100, height: 620 } });
    const file = `vscode-remote://127.0.0.1:${this.port}${join(folder, names[0] ?? "")}`;
    const payload = encodeURIComponent(JSON.stringify([["openFile", file]]));
    await page.goto(`http://127.0.0.1:${this.port}/?folder=${folder}&payload=${payload}`);
    const window = new Window(this, page, folder, names[0] ?? "");
    await window.started();
    return window;
  }

  /** What the worker plays from its next start on. */
  play(runs: Runs | undefined, pauseMs = 20): void {
    writeFileSync(this.path("script.json"), runs === undefined ? "" : JSON.stringify({ runs, pause_ms: pauseMs }));
  }

  /** Write the settings. A window that is open reads those of the machine at once, the user's when it opens. */
  set(settings: Settings, machine: Settings = {}): void {
    writeFileSync(this.path("data/User/settings.json"), JSON.stringify({ ...BASE, ...settings }));
    writeFileSync(this.path("data/Machine/settings.json"), JSON.stringify(machine));
  }

  get serverPid(): number | undefined {
    const file = this.path("server.pid");
    const text = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
    return text === "" ? undefined : Number(text);
  }

  killServer(): void {
    try {
      process.kill(this.serverPid ?? 0x7fffffff, "SIGKILL");
    } catch {
      // It ended by itself.
    }
  }

  /** Kill the model's worker of these windows, and nothing else. */
  killWorker(): void {
    const workers = this.workers();
    if (workers.length === 0) {
      throw new Error("there is no worker to kill");
    }
    workers.forEach((pid) => process.kill(pid, "SIGKILL"));
  }

  private workers(): readonly number[] {
    const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return processes.map(Number).filter((pid) => {
      const words = read(`/proc/${pid}/cmdline`).split("\0");
      return words.includes("worker") && words.some((word) => word.includes(this.path("runtime")));
    });
  }

  /** Leave no `frostline` in PATH, until it is put back. */
  takeAway(): void {
    rmSync(this.path("bin/frostline"));
  }

  putBack(): void {
    this.shim("bin/frostline");
  }

  /** Make a small wheel whose `frostline` is the real one: what is tried is the installing, not the network. */
  wheel(): string {
    this.shim("frostline-of-wheel");
    const file = this.path("frostline-1-py3-none-any.whl");
    const lines = [
      "import sys, zipfile",
      "with zipfile.ZipFile(sys.argv[1], 'w') as wheel:",
      "    wheel.writestr('frostline-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: frostline\\nVersion: 1\\n')",
      "    wheel.writestr('frostline-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')",
      "    wheel.write(sys.argv[2], 'frostline-1.data/scripts/frostline')",
      "    wheel.writestr('frostline-1.dist-info/RECORD', '')",
    ];
    execFileSync(this.path("bin/python3"), ["-c", lines.join("\n"), file, this.path("frostline-of-wheel")]);
    return file;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  private get env(): NodeJS.ProcessEnv {
    const others = (process.env["PATH"] ?? "").split(":").filter((folder) => !existsSync(join(folder, "frostline")));
    return {
      ...process.env,
      HOME: this.path("home"),
      PATH: [this.path("bin"), ...others].join(":"),
      FROSTLINE_RUNTIME_DIR: this.path("runtime"),
      FROSTLINE_CONFIG: this.path("no-settings.toml"),
      OMP_NUM_THREADS: "1",
    };
  }

  /** Write a `frostline` that notes its process and plays the script, if there is one. */
  private shim(name: string): void {
    const script = this.path("script.json");
    this.script(name, [
      `echo $$ > '${this.path("server.pid")}'`,
      `echo x >> '${this.path("starts")}'`,
      `if [ -s '${script}' ]; then exec '${SERVER}' "$@" --worker 'scripted:${script}'; fi`,
      `exec '${SERVER}' "$@"`,
    ]);
  }

  private script(name: string, lines: readonly string[]): void {
    writeFileSync(this.path(name), ["#!/bin/sh", ...lines, ""].join("\n"));
    chmodSync(this.path(name), 0o755);
  }
}

/** A stretch of drawn text, and how it looks. */
export interface Drawn {
  readonly text: string;
  readonly italic: boolean;
  readonly color: string;
  /** The style of its border: none, dotted, solid. */
  readonly frame: string;
}

/** One window, seen and used as a person does. */
export class Window {
  readonly code: Code;
  readonly page: Page;
  readonly folder: string;
  readonly name: string;

  constructor(code: Code, page: Page, folder: string, name: string) {
    this.code = code;
    this.page = page;
    this.folder = folder;
    this.name = name;
  }

  async started(): Promise<void> {
    await this.page.waitForSelector(".editor-instance .view-line", { timeout: PATIENCE_MS });
    await this.focus();
  }

  async close(): Promise<void> {
    await this.page.close();
  }

  // --- what a person does ------------------------------------------------------------------------

  /** Click beside the text. While a window opens things move; a locator's click would scroll the editor away. */
  async focus(): Promise<void> {
    await until(async () => {
      const box = await this.page.locator(".editor-instance .overflow-guard").first().boundingBox();
      await this.page.mouse.click((box?.x ?? 0) + 460, (box?.y ?? 0) + 60);
      return this.page.evaluate(() => document.activeElement?.closest(".editor-instance") !== null);
    }, "the editor has the focus");
  }

  /** Put the cursor at a line and column, from 1. */
  async goto(line: number, column: number): Promise<void> {
    await this.page.keyboard.press("Control+g");
    await this.page.locator(".quick-input-box input").fill(`:${line}:${column}`);
    await this.page.keyboard.press("Enter");
    await this.gone(".quick-input-widget:visible");
    await this.see(() => this.statusText("status.editor.selection"), (text) => text.includes(`Ln ${line}, Col ${column}`));
  }

  /** Select from a place to the end of a line some lines below, from 1. */
  async select(line: number, column: number, down = 0): Promise<void> {
    await this.goto(line, column);
    for (let count = 0; count < down; count += 1) {
      await this.page.keyboard.press("Shift+ArrowDown");
    }
    await this.page.keyboard.press("Shift+End");
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      await this.page.keyboard.press(key);
    }
  }

  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text, { delay: 30 });
  }

  /** Run a command from the palette, by its title. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-box input");
    await input.fill(`>${title}`);
    await this.page
      .locator(".quick-input-list .monaco-list-row", { hasText: title })
      .first()
      .click({ timeout: PATIENCE_MS });
    await this.gone(".quick-input-list:visible");
  }

  // --- what a person sees ------------------------------------------------------------------------

  /** The text of the first editor, without what is only drawn. */
  async text(editor = 0): Promise<string> {
    return this.page.evaluate((index) => {
      const lines = [...(document.querySelectorAll(".editor-instance")[index]?.querySelectorAll(".view-line") ?? [])];
      const top = (line: Element): number => parseFloat((line as HTMLElement).style.top);
      const shown = lines.sort((one, other) => top(one) - top(other)).map((line) => {
        const copy = line.cloneNode(true) as Element;
        copy.querySelectorAll("[class*=ghost-text]").forEach((ghost) => ghost.remove());
        return copy.textContent ?? "";
      });
      return shown.join("\n").replace(/\u00a0/g, " ").replace(/[\u200b\u200c]/g, "");
    }, editor);
  }

  /** What is drawn of a draft, for each line of text that has some. */
  async drawn(): Promise<readonly (readonly Drawn[])[]> {
    return this.page.evaluate(() => {
      const top = (line: Element): number => parseFloat((line as HTMLElement).style.top);
      return [...document.querySelectorAll(".editor-instance .view-line")]
        .sort((one, other) => top(one) - top(other))
        .map((line) =>
          [...line.querySelectorAll("[class*=TextEditorDecorationType]")].flatMap((span) => {
            const style = getComputedStyle(span, "::after");
            const text = /^"(.*)"$/s.exec(style.content)?.[1];
            const plain = text?.replace(/\u00a0/g, " ").replace(/\\(.)/g, "$1");
            const looks = { italic: style.fontStyle === "italic", color: style.color, frame: style.borderTopStyle };
            return plain === undefined ? [] : [{ text: plain, ...looks }];
          }),
        )
        .filter((runs) => runs.length > 0);
    });
  }

  async drawnText(): Promise<string> {
    return (await this.drawn()).map((runs) => runs.map((run) => run.text).join("")).join("\n");
  }

  /** The colour behind the text. */
  async paper(): Promise<string> {
    return this.page.evaluate(() => {
      const editor = document.querySelector(".editor-instance .monaco-editor-background");
      return getComputedStyle(editor as Element).backgroundColor;
    });
  }

  /** The old text that is struck. */
  async struck(): Promise<string> {
    return this.page.evaluate(() =>
      [...document.querySelectorAll(".editor-instance .view-line span")]
        .filter((span) => span.children.length === 0 && getComputedStyle(span).textDecorationLine === "line-through")
        .map((span) => span.textContent?.replace(/\u00a0/g, " "))
        .join(""),
    );
  }

  async ghost(): Promise<string> {
    return this.page.evaluate(() =>
      [...document.querySelectorAll("[class*=ghost-text-decoration], .ghost-text .view-line, .suggest-preview-text .view-line")]
        .map((part) => part.textContent ?? "")
        .join("\n")
        .replace(/\u00a0/g, " "),
    );
  }

  async lenses(): Promise<string> {
    return (await this.page.locator(".codelens-decoration").allTextContents()).join(" / ");
  }

  /** How far down the code lenses and the lines of the file are, in pixels. */
  async heights(): Promise<readonly number[]> {
    return this.page.evaluate(() =>
      [...document.querySelectorAll(".editor-instance .codelens-decoration, .editor-instance .view-line")]
        .map((element) => element.getBoundingClientRect().top)
        .sort((one, other) => one - other),
    );
  }

  async statusText(id: string): Promise<string> {
    return this.page.evaluate(
      (name) => document.querySelector(`.statusbar-item[id*="${name}"]`)?.textContent ?? "",
      id,
    );
  }

  status(): Promise<string> {
    return this.statusText("frostline.status");
  }

  async statusWords(): Promise<string> {
    return this.page.evaluate(() => {
      const item = document.querySelector('.statusbar-item[id*="frostline.status"]');
      return item?.querySelector("[aria-label]")?.getAttribute("aria-label") ?? item?.getAttribute("aria-label") ?? "";
    });
  }

  /** Whether the file of this window has changes that are not saved. */
  async dirty(): Promise<boolean> {
    return (await this.page.locator(`.tab.dirty[data-resource-name="${this.name}"]`).count()) > 0;
  }

  async notifications(): Promise<string[]> {
    return this.page.locator(".notifications-toasts .notification-list-item-message").allTextContents();
  }

  get onDisk(): string {
    return readFileSync(join(this.folder, this.name), "utf8");
  }

  // --- waiting -----------------------------------------------------------------------------------

  /** Wait until what is seen is as wanted. */
  async see<T>(look: () => Promise<T>, wanted: (seen: T) => boolean): Promise<T> {
    let seen: T | undefined;
    await until(
      async () => wanted((seen = await look())),
      () => `${wanted}; seen at last: ${JSON.stringify(seen)}`,
    );
    return seen as T;
  }

  async gone(selector: string): Promise<void> {
    await until(async () => (await this.page.locator(selector).count()) === 0, `${selector} is gone`);
  }
}

export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string),
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const met = await Promise.resolve()
      .then(condition)
      .catch(() => false);
    if (met) {
      return;
    }
    if (Date.now() > end) {
      throw new Error(`waited in vain: ${typeof what === "string" ? what : what()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
}

/** Return what is in a file, or nothing where it is gone. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function ran(child: ChildProcess): Promise<void> {
  let said = "";
  child.stdout?.on("data", (data: Buffer) => (said += data.toString()));
  child.stderr?.on("data", (data: Buffer) => (said += data.toString()));
  return new Promise((resolve, reject) => {
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`${code}: ${said}`))));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
