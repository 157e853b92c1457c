// What the user set, read anew each time it is needed, so that a change counts at once.

import * as vscode from "vscode";

/** Settings of the server's own, passed on by these names. */
const PASSED_ON = [
  "model",
  "device",
  "threads",
  "threshold",
  "steps",
  "temperature",
  "length",
  "quietBelow",
  "inlineMs",
  "idleS",
  "maxFileBytes",
  "exclude",
  "respectGitignore",
  "maxEditChars",
  "protected",
  "risks",
] as const;

export type View = "auto" | "inline" | "diff" | "indicator";
export type GhostText = "off" | "onDemand" | "auto";
export type Announce = "auto" | "on" | "off";

function section(scope?: vscode.TextDocument): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration("frostline", scope);
}

export const settings = {
  enabled: (): boolean => section().get("enabled", true),
  command: (): readonly string[] => section().get("command", []),
  package: (): string => section().get("package", "").trim(),
  languages: (): readonly string[] => section().get("languages", []),
  view: (): View => section().get("view", "auto"),
  codeLens: (): boolean => section().get("codeLens", true),
  strength: (): number => section().get("strength", 0.6),
  announce: (): Announce => section().get("announce", "auto"),
  ghostText: (document: vscode.TextDocument): GhostText => section(document).get("ghostText", "onDemand"),
};

export function serves(document: vscode.TextDocument): boolean {
  const local = document.uri.scheme === "file" || document.uri.scheme === "untitled";
  return local && settings.enabled() && settings.languages().includes(document.languageId);
}

/** What was passed on so far: a setting that is taken back has to be passed on once more. */
const passed = new Set<string>();

/**
 * Return the server's settings. Only what somebody set is passed on, so that the defaults here do not
 * hide what the user's own settings file says.
 */
export function forServer(): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of PASSED_ON) {
    const found = section().inspect(name);
    const set = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue];
    if (passed.has(name) || set.some((value) => value !== undefined)) {
      passed.add(name);
      values[name] = section().get(name);
    }
  }
  return values;
}
