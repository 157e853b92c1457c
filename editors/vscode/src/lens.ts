// What can be done with a draft, above each live hole. It comes when the draft was asked for and stays on
// its line until the draft is over; a step of the denoise does not touch it.

import * as vscode from "vscode";

import { type Draft, type Drafts, rangeOf } from "./drafts";
import { settings } from "./settings";

export class Lenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];
  private shown = "";

  constructor(private readonly drafts: Drafts) {
    this.subscriptions = [
      vscode.languages.registerCodeLensProvider([{ scheme: "file" }, { scheme: "untitled" }], this),
      drafts.onDidChange(() => this.refresh()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("frostline.codeLens")) {
          this.changed.fire();
        }
      }),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const draft = this.drafts.of(document.uri);
    if (draft === undefined || !settings.codeLens()) {
      return [];
    }
    return draft.holes.flatMap((hole, index) => {
      const line = Math.min(rangeOf(hole.range).start.line, document.lineCount - 1);
      return offers(draft, index).map(
        (command) => new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command),
      );
    });
  }

  dispose(): void {
    vscode.Disposable.from(this.changed, ...this.subscriptions).dispose();
  }

  private refresh(): void {
    const now = JSON.stringify(
      this.drafts.all.map((draft) => [
        draft.uri,
        draft.state,
        draft.refusal,
        draft.holes.map((hole) => hole.range.start.line),
      ]),
    );
    if (now !== this.shown) {
      this.shown = now;
      this.changed.fire();
    }
  }
}

function offers(draft: Draft, hole: number): readonly vscode.Command[] {
  const one = draft.holes.length === 1;
  const reject = { title: "Reject", command: "frostline.reject" };
  if (draft.state !== "ready") {
    const stable = { title: "Accept What Is Stable", command: "frostline.acceptStable" };
    return hole === 0 ? [stable, reject] : [];
  }
  const anyway = draft.refusal?.code === "unsound";
  const words = anyway ? " Though It Does Not Parse" : "";
  const all = {
    title: `$(check) Accept${one ? "" : " All"}${words}`,
    command: "frostline.accept",
    arguments: [{ anyway }],
  };
  const this_ = { title: `Accept This Hole${words}`, command: "frostline.acceptHole", arguments: [{ hole, anyway }] };
  const line = { title: "Line", command: "frostline.acceptLine", arguments: [{ hole }] };
  const word = { title: "Word", command: "frostline.acceptWord", arguments: [{ hole }] };
  const rest = [
    { title: "Retry", command: "frostline.retry" },
    { title: "Refine…", command: "frostline.refine" },
    { title: "Diff", command: "frostline.showDiff" },
    reject,
  ];
  return [...(hole === 0 ? [all] : []), ...(one ? [] : [this_]), line, word, ...(hole === 0 ? rest : [])];
}
