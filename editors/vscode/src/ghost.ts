// Ghost text at the cursor, through VS Code's own inline completion.
//
// VS Code shows an item only when its range is on the cursor's line, and asks again after each part that
// is accepted. The rest of what was shown is then the answer, at once and without another draft.

import * as vscode from "vscode";

import { settings } from "./settings";

/** A paste, or what another extension put in: more than this at once is not typing. */
const TYPED = 8;

/** What was answered last, and the text that it was for. */
interface Shown {
  readonly uri: string;
  readonly start: vscode.Position;
  /** What stands on the line up to `start`, and behind what is replaced. */
  readonly before: string;
  readonly behind: string;
  readonly text: string;
  readonly replaced: string;
}

type Items = vscode.InlineCompletionItem[];

/** The request to the server. */
type Ask = (
  document: vscode.TextDocument,
  position: vscode.Position,
  context: vscode.InlineCompletionContext,
  token: vscode.CancellationToken,
) => vscode.ProviderResult<Items | vscode.InlineCompletionList>;

export class Ghost implements vscode.Disposable {
  private shown: Shown | undefined;
  /** Documents whose last change was typing, and so may be asked about without being told to. */
  private readonly typed = new Set<string>();
  private readonly subscriptions: vscode.Disposable[];

  constructor() {
    this.subscriptions = [
      vscode.workspace.onDidChangeTextDocument((event) => {
        const uri = event.document.uri.toString();
        if (event.contentChanges.length > 0) {
          isTyping(event) ? this.typed.add(uri) : this.typed.delete(uri);
        }
      }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.typed.delete(uri.toString())),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  clear(): void {
    this.shown = undefined;
  }

  /** Middleware of the language client: when to ask, and what of the answer can be shown. */
  async provide(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
    ask: Ask,
  ): Promise<Items> {
    const mode = settings.ghostText(document);
    const invoked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    if (mode === "off") {
      return [];
    }
    const rest = this.rest(document, position);
    if (rest !== undefined) {
      return [rest];
    }
    const asked = invoked || (mode === "auto" && this.typed.has(document.uri.toString()));
    if (!asked) {
      return [];
    }
    const answer = await ask(document, position, context, token);
    const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
    const fit = items.filter((item) => showable(item, position));
    this.shown = fit[0] && remembered(document, position, fit[0]);
    return fit;
  }

  /** Return what is left of what was shown, where the text since then is the beginning of it. */
  private rest(
    document: vscode.TextDocument,
    position: vscode.Position,
  ): vscode.InlineCompletionItem | undefined {
    const shown = this.shown;
    if (shown === undefined || shown.uri !== document.uri.toString() || !position.isAfter(shown.start)) {
      return undefined;
    }
    const taken = lf(document.getText(new vscode.Range(shown.start, position)));
    const line = document.lineAt(position.line);
    const behind = line.text.slice(position.character);
    const before = document.lineAt(shown.start.line).text.slice(0, shown.start.character);
    const replaced = behind.length - shown.behind.length;
    const fits =
      before === shown.before &&
      shown.text.startsWith(taken) &&
      shown.text.length > taken.length &&
      behind.endsWith(shown.behind) &&
      shown.replaced.endsWith(behind.slice(0, Math.max(replaced, 0)));
    if (!fits) {
      return undefined;
    }
    const range = new vscode.Range(position, position.translate(0, replaced));
    return new vscode.InlineCompletionItem(shown.text.slice(taken.length), range);
  }
}

function isTyping(event: vscode.TextDocumentChangeEvent): boolean {
  const insertions = event.contentChanges.every(
    (change) => change.text.trim() !== "" && change.text.length <= TYPED && change.range.isEmpty,
  );
  const newline = event.contentChanges.every((change) => /^\r?\n[\t ]*$/.test(change.text));
  return event.reason === undefined && (insertions || newline);
}

function showable(item: vscode.InlineCompletionItem, position: vscode.Position): boolean {
  const range = item.range ?? new vscode.Range(position, position);
  return range.isSingleLine && range.start.line === position.line && typeof item.insertText === "string";
}

function remembered(
  document: vscode.TextDocument,
  position: vscode.Position,
  item: vscode.InlineCompletionItem,
): Shown {
  const range = item.range ?? new vscode.Range(position, position);
  const line = document.lineAt(range.start.line).text;
  return {
    uri: document.uri.toString(),
    start: range.start,
    before: line.slice(0, range.start.character),
    behind: line.slice(range.end.character),
    text: lf(item.insertText as string),
    replaced: line.slice(range.start.character, range.end.character),
  };
}

function lf(text: string): string {
  return text.replace(/\r\n|\r/g, "\n");
}
