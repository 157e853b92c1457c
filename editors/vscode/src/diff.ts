// A draft as a document of its own beside the file: for drafts that are taller than their hole, and for
// whoever likes a diff. The text is the server's (`workspace/textDocumentContent`).

import { basename } from "node:path";
import * as vscode from "vscode";
import { TextDocumentContentRequest } from "vscode-languageclient";

import { type Draft, type Drafts, rangeOf } from "./drafts";
import { linesTooMany } from "./draw";
import { type Server } from "./server";
import { settings } from "./settings";

interface ContentFeature {
  getProviders(): readonly {
    readonly scheme: string;
    readonly onDidChangeEmitter: vscode.EventEmitter<vscode.Uri>;
  }[];
}

/** A stretch of a hole's draft, in code points. */
export interface Selected {
  readonly hole: number;
  readonly span: [number, number];
}

export class Diff implements vscode.Disposable {
  /** Sessions whose diff was opened by itself: once closed by the user, it stays closed. */
  private readonly offered = new Set<string>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly drafts: Drafts,
    private readonly server: Server,
  ) {
    this.subscriptions = [
      drafts.onDidChange((uri) => this.changed(uri)),
      drafts.onDidEnd((draft) => this.ended(draft)),
      server.onDidEnd(() => this.close(() => true)),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Show the draft beside the file. The focus moves there only if it is asked to. */
  async show(draft: Draft, options: { focus: boolean }): Promise<void> {
    const file = vscode.Uri.parse(draft.uri);
    const name = basename(file.path);
    await vscode.commands.executeCommand(
      "vscode.diff",
      file,
      uriOf(draft),
      `${name} (Frostline draft)`,
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: !options.focus, preview: true },
    );
  }

  /** Return what is selected of a draft in its virtual document, or undefined outside of its holes. */
  selected(draft: Draft, editor: vscode.TextEditor): Selected | undefined {
    const source = vscode.workspace.textDocuments.find((one) => one.uri.toString() === draft.uri);
    if (editor.document.uri.scheme !== "frostline" || source === undefined) {
      return undefined;
    }
    const [from, to] = [editor.selection.start, editor.selection.end].map((place) =>
      lengthOf(editor.document, new vscode.Position(0, 0), place),
    ) as [number, number];
    let reached = 0;
    let place = new vscode.Position(0, 0);
    for (const [hole, shown] of draft.holes.entries()) {
      const range = rangeOf(shown.range);
      reached += lengthOf(source, place, range.start);
      const length = points(shown.pieces.map((piece) => piece.text).join(""));
      const span: [number, number] = [Math.max(from - reached, 0), Math.min(to - reached, length)];
      if (span[0] < span[1]) {
        return { hole, span };
      }
      reached += length;
      place = range.end;
    }
    return undefined;
  }

  private changed(uri: string): void {
    const draft = this.drafts.all.find((one) => one.uri === uri);
    if (draft === undefined) {
      return;
    }
    const view = settings.view();
    const wanted = view === "diff" || (view === "auto" && draft.holes.some((hole) => linesTooMany(hole) > 0));
    if (wanted && !this.offered.has(draft.session)) {
      this.offered.add(draft.session);
      void this.show(draft, { focus: false });
    }
    this.refresh(draft);
  }

  private refresh(draft: Draft): void {
    const target = uriOf(draft);
    if (vscode.workspace.textDocuments.some((one) => one.uri.toString() === target.toString())) {
      const feature = this.server.feature<ContentFeature>(TextDocumentContentRequest.method);
      for (const provider of feature?.getProviders() ?? []) {
        provider.onDidChangeEmitter.fire(target);
      }
    }
  }

  private ended(draft: Draft): void {
    // After a part of a draft the same session goes on; then the view of it stays.
    setTimeout(() => {
      if (!this.drafts.all.some((one) => one.session === draft.session)) {
        this.offered.delete(draft.session);
        this.close((uri) => uri.toString() === uriOf(draft).toString());
      }
    }, 200);
  }

  private close(which: (uri: vscode.Uri) => boolean): void {
    const tabs = vscode.window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter(
        ({ input }) =>
          input instanceof vscode.TabInputTextDiff &&
          input.modified.scheme === "frostline" &&
          which(input.modified),
      );
    void vscode.window.tabGroups.close(tabs, true);
  }
}

function uriOf(draft: Draft): vscode.Uri {
  return vscode.Uri.from({
    scheme: "frostline",
    path: `/${draft.session}/${basename(vscode.Uri.parse(draft.uri).path)}`,
  });
}

/** Return the code points between two places, each line end counted as one. */
function lengthOf(document: vscode.TextDocument, from: vscode.Position, to: vscode.Position): number {
  return points(document.getText(new vscode.Range(from, to)));
}

function points(text: string): number {
  return Array.from(text.replace(/\r\n|\r/g, "\n")).length;
}
