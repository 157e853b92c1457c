// The item in the status bar: how the server, its model and the draft are, in words; a click opens what
// can be done. Words for screen readers go with it, and with `frostline.announce` they are said.

import * as vscode from "vscode";

import { type Drafts } from "./drafts";
import { type Server } from "./server";
import { settings } from "./settings";

interface Looks {
  /** With an icon. */
  readonly text: string;
  /** A sentence. */
  readonly words: string;
  readonly warns?: boolean;
}

/** Return how things are. What the user has in front of them comes first. */
function looks(server: Server, drafts: Drafts): Looks {
  const { worker, model = "", device = "", progress, memory, cannot = [], message = "" } = server.status;
  if (server.life === "off") {
    return { text: "$(circle-slash) Frostline: off", words: "Frostline is off" };
  }
  if (server.life === "missing") {
    return { text: "$(warning) Frostline: not installed", words: server.reason, warns: true };
  }
  if (server.life === "lost") {
    return { text: "$(warning) Frostline: lost", words: server.reason, warns: true };
  }
  if (server.life === "starting" || worker === "starting") {
    return { text: "$(loading~spin) Frostline: starting", words: "Frostline is starting" };
  }
  if (worker === "loading") {
    const share = progress === undefined ? "" : ` ${Math.round(progress * 100)} %`;
    return { text: `$(loading~spin) Frostline: loading${share}`, words: `Frostline loads ${model}${share}` };
  }
  if (worker === "lost") {
    const words = message || "The model's worker ended; the next draft starts another";
    return { text: "$(warning) Frostline: lost", words, warns: true };
  }
  const draft = drafts.current;
  if (draft?.state === "drafting") {
    const step = draft.steps > 0 ? ` ${draft.step}/${draft.steps}` : "";
    const words = draft.steps > 0 ? `, step ${draft.step} of ${draft.steps}` : "";
    return { text: `$(loading~spin) Frostline: drafting${step}`, words: `Frostline is drafting${words}` };
  }
  if (draft?.state === "ready") {
    const unsound = draft.refusal?.code === "unsound";
    const words = unsound ? `The draft is ready. ${draft.refusal?.message}` : "The draft is ready";
    return { text: `$(${unsound ? "question" : "check"}) Frostline: draft ready`, words };
  }
  if (worker === "off") {
    return { text: "$(circle-outline) Frostline: idle", words: "Frostline loads its model with the first draft" };
  }
  const size = memory === undefined ? "" : `, ${Math.round(memory / 1024 ** 2)} MiB`;
  const ready = `Frostline is ready: ${model} on ${device}${size}`;
  const words = cannot.length > 0 ? [`${ready}.`, ...cannot].join(" ") : ready;
  return { text: "$(pass) Frostline: ready", words };
}

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "frostline.status",
    vscode.StatusBarAlignment.Right,
    100,
  );
  private readonly subscriptions: vscode.Disposable[];
  private said = "";

  constructor(
    private readonly server: Server,
    private readonly drafts: Drafts,
  ) {
    this.item.name = "Frostline";
    this.item.command = "frostline.menu";
    this.subscriptions = [
      server.onDidChange(() => this.refresh()),
      drafts.onDidChange(() => this.refresh()),
      drafts.onDidEnd((draft) => this.announce(`The draft is ${draft.state === "committed" ? "in the file" : draft.state}`)),
      vscode.window.onDidChangeActiveTextEditor(() => this.refresh()),
    ];
    this.refresh();
    this.item.show();
  }

  dispose(): void {
    vscode.Disposable.from(this.item, ...this.subscriptions).dispose();
  }

  private refresh(): void {
    const { text, words, warns = false } = looks(this.server, this.drafts);
    this.item.text = text;
    this.item.tooltip = words;
    this.item.backgroundColor = warns ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.accessibilityInformation = { label: words, role: "button" };
    const draft = this.drafts.current;
    this.context(draft !== undefined, draft?.state === "ready");
    // A step is not worth a word: what is said is that a draft begins, is ready, or is lost.
    this.announce(words.replace(/, step .*/, ""));
  }

  private context(shown: boolean, ready: boolean): void {
    void vscode.commands.executeCommand("setContext", "frostline.draftShown", shown);
    void vscode.commands.executeCommand("setContext", "frostline.draftReady", ready);
  }

  /** Say something to a screen reader: VS Code reads out its notifications, and has no other stable way. */
  private announce(words: string): void {
    const wish = settings.announce();
    const support = vscode.workspace.getConfiguration("editor").get<string>("accessibilitySupport");
    const wanted = wish === "on" || (wish === "auto" && support === "on");
    if (words !== this.said && wanted) {
      void vscode.window.showInformationMessage(words);
    }
    this.said = words;
  }
}
