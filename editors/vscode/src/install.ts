// The server is a Python package. This finds its command, or puts it into a folder of the extension's own.

import { execFile, spawn } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";

import { settings } from "./settings";

const windows = process.platform === "win32";
const OLDEST = [3, 11] as const;

/** Raised where the server cannot be found or installed; the message says what to do. */
export class Missing extends Error {}

function runnable(path: string): boolean {
  try {
    accessSync(path, windows ? constants.F_OK : constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Return the file of a command. Names without a folder are looked for in PATH, never in a workspace. */
function found(name: string): string | undefined {
  if (isAbsolute(name)) {
    return runnable(name) ? name : undefined;
  }
  const endings = windows ? [".exe", ".cmd", ".bat"] : [""];
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter(isAbsolute)
    .flatMap((folder) => endings.map((ending) => join(folder, name + ending)))
    .find(runnable);
}

function ownFolder(context: vscode.ExtensionContext): string {
  return join(context.globalStorageUri.fsPath, "server");
}

function inFolder(folder: string, name: string): string {
  return windows ? join(folder, "Scripts", `${name}.exe`) : join(folder, "bin", name);
}

/**
 * Return the server's command line: the setting's, the one in PATH, or the one installed from here.
 *
 * @throws Missing
 */
export function serverCommand(context: vscode.ExtensionContext): readonly string[] {
  const [first, ...rest] = settings.command();
  if (first !== undefined) {
    const file = found(first.replace(/^~(?=\/)/, homedir()));
    if (file === undefined) {
      throw new Missing(`"${first}" of the setting frostline.command is not there. Correct it, or clear it.`);
    }
    return [file, ...rest];
  }
  const file = [found("frostline"), inFolder(ownFolder(context), "frostline")].find(
    (path) => path !== undefined && existsSync(path),
  );
  if (file === undefined) {
    throw new Missing(
      "The Frostline server is not installed. Run `pip install '.[local]'` in the folder with Frostline's sources, " +
        "where VS Code finds `frostline` in PATH" +
        (settings.package() === "" ? "." : ', or "Frostline: Install the Server".'),
    );
  }
  return [file, "lsp"];
}

async function python(): Promise<string> {
  for (const name of ["python3", "python", "python3.13", "python3.12", "python3.11"]) {
    const file = found(name);
    if (file !== undefined) {
      const { stdout } = await promisify(execFile)(
        file,
        ["-c", "import sys; print(*sys.version_info[:2])"],
        { cwd: homedir() },
      ).catch(() => ({ stdout: "0 0" }));
      const [major = 0, minor = 0] = stdout.trim().split(" ").map(Number);
      if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) {
        return file;
      }
    }
  }
  throw new Missing(`Frostline needs Python ${OLDEST.join(".")} or newer in PATH, with its venv module.`);
}

/**
 * Install the server into a virtual environment of the extension's own, telling `log` what goes on.
 *
 * What is installed is what the user named, and nothing by default: a name in a public registry could be
 * anybody's.
 *
 * @throws Missing
 */
export async function install(
  context: vscode.ExtensionContext,
  log: (line: string) => void,
  cancelled: vscode.CancellationToken,
): Promise<void> {
  const named = settings.package().replace(/^~(?=\/)/, homedir());
  if (named === "") {
    throw new Missing(
      "Frostline does not know what to install. Set frostline.package to its wheel or to the folder with its " +
        "sources, with [local] behind it.",
    );
  }
  const folder = ownFolder(context);
  await vscode.workspace.fs.createDirectory(context.globalStorageUri);
  await run(await python(), ["-m", "venv", folder], log, cancelled);
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--upgrade", named];
  await run(inFolder(folder, "python"), pip, log, cancelled);
}

function run(
  file: string,
  args: readonly string[],
  log: (line: string) => void,
  cancelled: vscode.CancellationToken,
): Promise<void> {
  return new Promise((resolve, reject) => {
    log([file, ...args].join(" "));
    // Not in the workspace: a Python there could pick up modules of the workspace's.
    const child = spawn(file, args, { cwd: homedir() });
    cancelled.onCancellationRequested(() => child.kill());
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data: Buffer) => log(data.toString().trimEnd()));
    }
    child.on("error", (error) => reject(new Missing(error.message)));
    child.on("close", (code) => {
      const words = cancelled.isCancellationRequested ? "was cancelled" : "failed; the output says why";
      code === 0 ? resolve() : reject(new Missing(`Installing the Frostline server ${words}.`));
    });
  });
}
