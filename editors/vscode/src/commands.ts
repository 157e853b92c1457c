// Commands: what the user wants, taken to the drafts or to the server.

import * as vscode from "vscode";

import { type Diff } from "./diff";
import { type Draft, type Drafts, rangeOf } from "./drafts";
import { install, Missing } from "./install";
import { type IntentName, type Scope } from "./protocol";
import { type Server } from "./server";
import { serves, settings } from "./settings";

export interface Parts {
  readonly context: vscode.ExtensionContext;
  readonly server: Server;
  readonly drafts: Drafts;
  readonly diff: Diff;
  readonly output: vscode.LogOutputChannel;
  readonly say: (sentence: string) => void;
}

/** What a code lens, a code action or another extension can name. */
interface Named {
  readonly hole?: number;
  readonly anyway?: boolean;
}

export function register(parts: Parts): vscode.Disposable {
  const on = (name: string, run: (argument?: unknown) => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(`frostline.${name}`, run);
  const { drafts, server, output } = parts;
  const live = (run: (draft: Draft) => unknown) => () => drafts.current && run(drafts.current);
  return vscode.Disposable.from(
    on("draft", () => begin(parts)),
    on("fill", () => begin(parts, "infill")),
    on("rewrite", () => begin(parts, "rewrite")),
    on("rewriteWith", () => rewriteWith(parts)),
    on("body", () => begin(parts, "skeleton")),
    on("repair", () => begin(parts, "repair")),
    on("act", (data) => act(parts, data as Action)),
    on("accept", (named) => accept(drafts, "all", named as Named)),
    on("acceptHole", (named) => accept(drafts, "hole", named as Named)),
    on("acceptLine", (named) => accept(drafts, "line", named as Named)),
    on("acceptWord", (named) => accept(drafts, "word", named as Named)),
    on("acceptStable", (named) => accept(drafts, "stable", named as Named)),
    on("reject", live((draft) => drafts.reject(draft))),
    on("retry", live((draft) => drafts.refine(draft))),
    on("refine", live((draft) => refine(drafts, draft))),
    on("back", live((draft) => drafts.back(draft))),
    on("pin", live((draft) => pin(parts, draft))),
    on("showDiff", live((draft) => parts.diff.show(draft, { focus: true }))),
    on("load", () => told(parts, server.command("frostline.load"))),
    on("unload", () => told(parts, server.command("frostline.unload"))),
    on("restart", () => server.apply({ restart: true })),
    on("showOutput", () => output.show(true)),
    on("toggle", () => toggle()),
    on("installServer", () => installServer(parts)),
    on("menu", () => menu(parts)),
  );
}

// --- beginning -----------------------------------------------------------------------------------

/** Begin a draft at the selections: each is a hole, and all are denoised together. */
async function begin(
  { drafts, server, say }: Parts,
  intent?: IntentName,
  options: { strength?: number; instruction?: string } = {},
): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (server.life !== "running") {
    say(server.reason || "Frostline is not running.");
  } else if (editor === undefined || !serves(editor.document)) {
    say("Frostline does not serve this document; see the setting frostline.languages.");
  } else {
    const selected = editor.selections.some((selection) => !selection.isEmpty);
    const wanted = intent ?? (selected ? "rewrite" : "infill");
    const strength = wanted === "rewrite" ? { strength: settings.strength() } : {};
    await drafts.begin(editor.document, editor.selections, wanted, { ...strength, ...options });
  }
}

async function rewriteWith(parts: Parts): Promise<void> {
  const wish = await asked("Rewrite the selection");
  if (wish !== undefined) {
    await begin(parts, "rewrite", wish);
  }
}

/** A code action of the server's, begun as a live draft. */
export interface Action {
  readonly uri: string;
  readonly range: Parameters<typeof rangeOf>[0];
  readonly intent?: IntentName;
  readonly strength?: number;
}

async function act({ drafts }: Parts, action: Action): Promise<void> {
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === action.uri);
  if (document !== undefined) {
    const intent = action.intent ?? "rewrite";
    const strength = intent === "rewrite" ? { strength: settings.strength() } : {};
    await drafts.begin(document, [rangeOf(action.range)], intent, strength);
  }
}

// --- a live draft --------------------------------------------------------------------------------

async function accept(drafts: Drafts, scope: Scope, named: Named = {}): Promise<void> {
  const draft = drafts.current;
  if (draft !== undefined) {
    const near = scope === "hole" ? holeNear(draft) : undefined;
    const hole = named.hole ?? near;
    await drafts.accept(draft, {
      scope,
      ...(hole === undefined ? {} : { hole }),
      ...(named.anyway === undefined ? {} : { anyway: named.anyway }),
    });
  }
}

/** Return the hole at or after the cursor, else the last one before it. */
function holeNear(draft: Draft): number {
  const editor = vscode.window.activeTextEditor;
  const cursor = editor?.document.uri.toString() === draft.uri ? editor.selection.active : undefined;
  const index = draft.holes.findIndex(
    ({ range }) => cursor !== undefined && rangeOf(range).end.isAfterOrEqual(cursor),
  );
  return cursor === undefined ? 0 : index < 0 ? draft.holes.length - 1 : index;
}

async function refine(drafts: Drafts, draft: Draft): Promise<void> {
  const wish = await asked("Refine the draft");
  if (wish !== undefined) {
    await drafts.refine(draft, wish);
  }
}

/** Ask for an instruction, or for how much is to be noised; undefined where the user leaves. */
async function asked(title: string): Promise<{ strength?: number; instruction?: string } | undefined> {
  const text = await vscode.window.showInputBox({
    title: `Frostline: ${title}`,
    prompt: "What is wanted, or a number from 1 to 100: how many percent of the tokens are denoised again",
    placeHolder: "for example: use a generator, or: 40",
  });
  const number = /^\s*(\d{1,3})\s*%?\s*$/.exec(text ?? "")?.[1];
  if (text === undefined) {
    return undefined;
  }
  return number === undefined ? { instruction: text } : { strength: Math.min(Number(number), 100) / 100 };
}

async function pin({ drafts, diff, say }: Parts, draft: Draft): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const selected = editor && diff.selected(draft, editor);
  if (selected === undefined) {
    await diff.show(draft, { focus: true });
    say("Select what shall stay, in the draft at the right, then pin it.");
  } else {
    await drafts.pin(draft, selected.hole, selected.span);
  }
}

// --- the server ----------------------------------------------------------------------------------

async function told({ say }: Parts, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => say(error instanceof Error ? error.message : String(error)));
}

async function toggle(): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("frostline");
  await configuration.update("enabled", !settings.enabled(), vscode.ConfigurationTarget.Global);
}

async function installServer({ context, server, output }: Parts): Promise<void> {
  const options = {
    location: vscode.ProgressLocation.Notification,
    title: "Frostline: installing the server",
    cancellable: true,
  };
  try {
    await vscode.window.withProgress(options, (_, cancelled) =>
      install(context, (line) => output.info(line), cancelled),
    );
    await server.apply({ restart: true });
  } catch (error) {
    const words = error instanceof Missing ? error.message : String(error);
    output.error(words);
    const unnamed = settings.package() === "";
    const next = await vscode.window.showErrorMessage(words, unnamed ? "Open the Setting" : "Show the Output");
    if (next !== undefined && unnamed) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "frostline.package");
    } else if (next !== undefined) {
      output.show(true);
    }
  }
}

async function menu({ server, drafts }: Parts): Promise<void> {
  const entry = (label: string, command: string): { label: string; command: string } => ({
    label,
    command: `frostline.${command}`,
  });
  const inDraft = [
    entry("$(check) Accept the Draft", "accept"),
    entry("$(refresh) Retry", "retry"),
    entry("$(edit) Refine…", "refine"),
    entry("$(diff) Show the Diff", "showDiff"),
    entry("$(close) Reject", "reject"),
  ];
  const running = [entry("$(arrow-down) Load the Model Now", "load"), entry("$(arrow-up) Unload the Model", "unload")];
  const items = [
    ...(drafts.current === undefined ? [] : inDraft),
    ...(server.life === "missing" ? [entry("$(cloud-download) Install the Server", "installServer")] : []),
    ...(server.life === "running" ? running : []),
    ...(server.life === "off" ? [] : [entry("$(debug-restart) Restart the Server", "restart")]),
    entry(settings.enabled() ? "$(circle-slash) Turn Off" : "$(play) Turn On", "toggle"),
    entry("$(output) Show the Output", "showOutput"),
    { label: "$(gear) Settings", command: "workbench.action.openSettings" },
  ];
  const title = server.reason === "" ? {} : { title: server.reason };
  const chosen = await vscode.window.showQuickPick(items, { ...title, placeHolder: "Frostline" });
  if (chosen !== undefined) {
    const settingsOf = chosen.command === "workbench.action.openSettings" ? ["frostline"] : [];
    await vscode.commands.executeCommand(chosen.command, ...settingsOf);
  }
}
