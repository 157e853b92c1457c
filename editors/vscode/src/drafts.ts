// The drafts that are live, as the server told them, and what a user can do with one. No draft is made or
// judged here: this shows, asks, and puts in the server's edit if the text is still the one it is for.

import * as vscode from "vscode";

import {
  ACCEPT,
  type Accept,
  type Accepted,
  APPLIED,
  BACK,
  BEGIN,
  type Begin,
  type Begun,
  type HoleShown,
  type IntentName,
  PIN,
  type Provisional,
  REFINE,
  type Refine,
  REJECT,
  type SessionState,
  type StateTold,
  type Told,
} from "./protocol";
import { type Server } from "./server";

/** One live draft. A change makes a new one. */
export interface Draft {
  readonly session: string;
  readonly uri: string;
  readonly state: SessionState;
  readonly refusal: Told | undefined;
  readonly step: number;
  readonly steps: number;
  /** The document's version that `holes` are for. */
  readonly version: number;
  readonly holes: readonly HoleShown[];
}

interface ServerEdit {
  readonly documentChanges: readonly {
    readonly textDocument: { readonly uri: string; readonly version: number | null };
    readonly edits: readonly { readonly range: vscode.Range; readonly newText: string }[];
  }[];
}

const ENDS: readonly SessionState[] = ["committed", "refused", "cancelled"];

export class Drafts implements vscode.Disposable {
  private readonly byUri = new Map<string, Draft>();
  /** States of sessions whose document is not known yet: they can come before the answer to begin. */
  private readonly early = new Map<string, StateTold>();
  private readonly changed = new vscode.EventEmitter<string>();
  private readonly finished = new vscode.EventEmitter<Draft>();
  private accepts = 0;
  /** A draft of this document came, changed or went. */
  readonly onDidChange = this.changed.event;
  /** A draft is over: in the file, refused or rejected. */
  readonly onDidEnd = this.finished.event;

  constructor(
    private readonly server: Server,
    private readonly say: (sentence: string) => void,
  ) {
    server.onDidEnd(() => this.clear());
  }

  // --- what the server tells ---------------------------------------------------------------------

  provisional(told: Provisional): void {
    const before = this.byUri.get(told.uri);
    const same = before?.session === told.session;
    const early = this.early.get(told.session);
    this.early.delete(told.session);
    const draft: Draft = {
      session: told.session,
      uri: told.uri,
      state: same ? before.state : (early?.state ?? "drafting"),
      refusal: same ? before.refusal : early?.refusal,
      // Step 0 of 0 is the draft as it stands, told again for a newer text.
      step: told.steps === 0 && same ? before.step : told.step,
      steps: told.steps === 0 && same ? before.steps : told.steps,
      version: told.version,
      holes: told.holes,
    };
    this.byUri.set(told.uri, draft);
    this.changed.fire(told.uri);
  }

  state(told: StateTold): void {
    const before = [...this.byUri.values()].find((draft) => draft.session === told.session);
    if (before === undefined) {
      this.early.set(told.session, told);
      return;
    }
    const draft = { ...before, state: told.state, refusal: told.refusal };
    if (!ENDS.includes(told.state)) {
      this.byUri.set(draft.uri, draft);
    } else if (told.state === "committed") {
      // After a part of it the same session goes on, and says so in its next message.
      this.byUri.delete(draft.uri);
      this.early.set(told.session, { session: told.session, state: "ready" });
    } else {
      this.byUri.delete(draft.uri);
      if (told.refusal !== undefined && told.refusal.code !== "replaced") {
        this.say(told.refusal.message);
      }
    }
    if (ENDS.includes(told.state)) {
      this.finished.fire(draft);
    }
    this.changed.fire(draft.uri);
  }

  // --- what is live ------------------------------------------------------------------------------

  /** Return the live draft of a document, or of the draft's own virtual document. */
  of(uri: vscode.Uri): Draft | undefined {
    if (uri.scheme !== "frostline") {
      return this.byUri.get(uri.toString());
    }
    const session = uri.path.split("/")[1];
    return [...this.byUri.values()].find((draft) => draft.session === session);
  }

  get all(): readonly Draft[] {
    return [...this.byUri.values()];
  }

  get current(): Draft | undefined {
    const editor = vscode.window.activeTextEditor;
    return editor === undefined ? undefined : this.of(editor.document.uri);
  }

  // --- what a user does --------------------------------------------------------------------------

  async begin(
    document: vscode.TextDocument,
    ranges: readonly vscode.Range[],
    intent: IntentName,
    options: { readonly strength?: number; readonly instruction?: string } = {},
  ): Promise<void> {
    const asked: Begin = {
      textDocument: { uri: document.uri.toString(), version: document.version },
      holes: ranges.map(({ start, end }) => ({ range: { start, end } })),
      intent,
      ...options,
    };
    const begun = await this.asked<Begun>(BEGIN, asked);
    const session = begun?.session ?? "";
    if (session === "" || begun?.holes === undefined) {
      return;
    }
    const known = this.byUri.get(asked.textDocument.uri);
    if (known?.session !== session && !this.over(session)) {
      const holes = begun.holes.map(({ range }) => ({ range, pieces: [] }));
      this.provisional({
        session,
        uri: asked.textDocument.uri,
        version: document.version,
        step: 0,
        steps: 0,
        holes,
      });
    }
  }

  /** Take a draft, or a part of it, into the file: one edit, which is one undo step. */
  async accept(draft: Draft, options: Omit<Accept, "session" | "key">): Promise<void> {
    const key = `vscode-${draft.session}-${(this.accepts += 1)}`;
    const answer = await this.asked<Accepted>(ACCEPT, { session: draft.session, key, ...options });
    if (answer?.edit === undefined) {
      return;
    }
    const edit = answer.edit as unknown as ServerEdit;
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === draft.uri);
    const applied = document !== undefined && (await put(document, edit, this.holes(draft)));
    this.server.notify(APPLIED, { session: draft.session, version: document?.version ?? 0, applied });
    if (!applied) {
      this.say("The text changed meanwhile, so nothing was put in. Ask again.");
    }
  }

  async reject(draft: Draft): Promise<void> {
    await this.asked<Accepted>(REJECT, { session: draft.session });
  }

  async refine(draft: Draft, options: Omit<Refine, "session"> = {}): Promise<void> {
    await this.asked<Accepted>(REFINE, { session: draft.session, ...options });
  }

  async back(draft: Draft): Promise<void> {
    await this.asked<Accepted>(BACK, { session: draft.session });
  }

  async pin(draft: Draft, hole: number, span: [number, number]): Promise<void> {
    await this.asked<Accepted>(PIN, { session: draft.session, hole, span });
  }

  dispose(): void {
    this.changed.dispose();
    this.finished.dispose();
  }

  private holes(draft: Draft): readonly vscode.Range[] {
    return draft.holes.map(({ range }) => rangeOf(range));
  }

  private over(session: string): boolean {
    const told = this.early.get(session);
    if (told === undefined || !ENDS.includes(told.state)) {
      return false;
    }
    this.early.delete(session);
    if (told.refusal !== undefined) {
      this.say(told.refusal.message);
    }
    return true;
  }

  private async asked<T extends { readonly refusal?: Told }>(
    method: string,
    params: object,
  ): Promise<T | undefined> {
    try {
      const answer = await this.server.request<T>(method, params);
      if (answer.refusal !== undefined) {
        this.say(answer.refusal.message);
      }
      return answer;
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  private clear(): void {
    const drafts = this.all;
    this.byUri.clear();
    this.early.clear();
    for (const draft of drafts) {
      this.changed.fire(draft.uri);
    }
  }
}

export function rangeOf(range: { readonly start: Pos; readonly end: Pos }): vscode.Range {
  return new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character);
}

interface Pos {
  readonly line: number;
  readonly character: number;
}

/** Make the server's edit in one undo step; return whether the text was the one that it is for. */
async function put(
  document: vscode.TextDocument,
  edit: ServerEdit,
  holes: readonly vscode.Range[],
): Promise<boolean> {
  const [change] = edit.documentChanges;
  if (change === undefined || change.edits.length === 0) {
    return true;
  }
  const { uri, version } = change.textDocument;
  if (uri !== document.uri.toString() || version !== document.version) {
    return false;
  }
  // An accept can come from the diff, whose left side is this very document and cannot be edited.
  const editor = [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors].find(
    (one) => one?.document === document && one.viewColumn !== undefined,
  );
  const beside = editor !== undefined && holes.some((hole) => hole.contains(editor.selection.active));
  const inEditor = await editor?.edit(
    (builder) => change.edits.forEach((one) => builder.replace(rangeOf(one.range), one.newText)),
    { undoStopBefore: true, undoStopAfter: true },
  );
  const applied = inEditor === true || (version === document.version && (await whole(document, change.edits)));
  const last = change.edits.at(-1);
  if (applied && editor !== undefined && beside && change.edits.length === 1 && last !== undefined) {
    const end = document.offsetAt(rangeOf(last.range).start) + inDocument(document, last.newText).length;
    const place = document.positionAt(end);
    editor.selection = new vscode.Selection(place, place);
  }
  return applied;
}

/** Make the edit where no editor shows the document, or the one that does takes none. */
function whole(
  document: vscode.TextDocument,
  edits: ServerEdit["documentChanges"][number]["edits"],
): Thenable<boolean> {
  const edit = new vscode.WorkspaceEdit();
  edit.set(
    document.uri,
    edits.map((one) => new vscode.TextEdit(rangeOf(one.range), one.newText)),
  );
  return vscode.workspace.applyEdit(edit);
}

function inDocument(document: vscode.TextDocument, text: string): string {
  const end = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
  return text.replace(/\r\n|\r|\n/g, end);
}
