// A draft drawn into the lines that there are, with decorations: they touch neither text nor undo.
//
// VS Code draws attached text on one line only, so a draft with more lines than its hole gets a mark that
// says how many more there are; `diff.ts` shows those. Never by colour alone: an open slot is a shade of
// the same width, a draft is slanted, stable text is upright, old text is struck. Themes of high contrast
// have nothing behind added text, so there it has a frame.

import * as vscode from "vscode";

import { type Draft, type Drafts, rangeOf } from "./drafts";
import { type HoleShown, type Piece, type PieceState } from "./protocol";
import { settings } from "./settings";

/** Runs that can differ on one line; what comes after is drawn like the last of them. */
const RUNS = 32;
const OPEN = "░";

type Looks = PieceState | "more";

const LOOKS: Record<Looks, vscode.ThemableDecorationAttachmentRenderOptions> = {
  open: { color: new vscode.ThemeColor("frostline.openForeground") },
  draft: {
    color: new vscode.ThemeColor("frostline.draftForeground"),
    backgroundColor: new vscode.ThemeColor("frostline.draftBackground"),
    fontStyle: "italic",
  },
  stable: {
    color: new vscode.ThemeColor("frostline.stableForeground"),
    backgroundColor: new vscode.ThemeColor("frostline.draftBackground"),
    fontStyle: "normal",
  },
  more: { color: new vscode.ThemeColor("frostline.draftForeground"), fontStyle: "italic" },
};

type Frame = Pick<vscode.ThemableDecorationAttachmentRenderOptions, "border" | "borderColor">;

function frame(looks: Looks): Frame {
  const { kind } = vscode.window.activeColorTheme;
  const high = kind === vscode.ColorThemeKind.HighContrast || kind === vscode.ColorThemeKind.HighContrastLight;
  const style = { open: undefined, more: undefined, draft: "dotted", stable: "solid" }[looks];
  const borderColor = new vscode.ThemeColor("contrastBorder");
  return high && style !== undefined ? { border: `1px ${style}`, borderColor } : {};
}

export interface Run {
  readonly text: string;
  readonly looks: Looks;
}

/** Return a draft's lines, each in runs that look the same. */
export function linesOf(pieces: readonly Piece[]): readonly (readonly Run[])[] {
  const lines: Run[][] = [[]];
  for (const piece of pieces) {
    piece.text.split(/\r\n|\r|\n/).forEach((text, index) => {
      if (index > 0) {
        lines.push([]);
      }
      if (text !== "") {
        lines.at(-1)?.push({ text, looks: piece.state });
      }
    });
  }
  return lines;
}

/** Return how many of a draft's lines have no line of the hole to stand on. */
export function linesTooMany(hole: HoleShown): number {
  const room = hole.range.end.line - hole.range.start.line + 1;
  return Math.max(0, linesOf(hole.pieces).length - room);
}

/** Return what is drawn for a run: blanks that do not collapse, and nothing that moves the line. */
function drawn(run: Run, tabSize: number): string {
  const text = run.looks === "open" ? run.text.replace(/\S/gu, OPEN) : run.text;
  return text
    .replace(/\t/g, " ".repeat(tabSize))
    .replace(/ /g, "\u00a0")
    .replace(/[\u0000-\u001f\u007f\u0085\u2028\u2029]/g, "·");
}

export class Draw implements vscode.Disposable {
  /** Attached texts at one place stand in the order of their types' names, so each run has a type. */
  private readonly runs = Array.from({ length: RUNS }, () =>
    vscode.window.createTextEditorDecorationType({
      rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    }),
  ).sort((one, other) => (`${one.key}-` < `${other.key}-` ? -1 : 1));
  private readonly old = vscode.window.createTextEditorDecorationType({
    textDecoration: "line-through",
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
  });
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly drafts: Drafts) {
    this.subscriptions = [
      drafts.onDidChange((uri) => this.all(uri)),
      vscode.window.onDidChangeVisibleTextEditors(() => this.all()),
      vscode.window.onDidChangeActiveColorTheme(() => this.all()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("frostline.view")) {
          this.all();
        }
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.runs, this.old, ...this.subscriptions).dispose();
  }

  private all(uri?: string): void {
    for (const editor of vscode.window.visibleTextEditors) {
      if (uri === undefined || editor.document.uri.toString() === uri) {
        this.draw(editor);
      }
    }
  }

  private draw(editor: vscode.TextEditor): void {
    const draft = this.drafts.of(editor.document.uri);
    const own = editor.document.uri.scheme === "frostline";
    const quiet = settings.view() === "indicator";
    if (draft === undefined || own || quiet) {
      this.set(editor, [], []);
    } else if (draft.version === editor.document.version) {
      this.set(editor, ...this.decorations(editor, draft));
    }
    // Another version: the text was edited on the way here. What is drawn moves along with the text,
    // and what is to be drawn now is told in a moment.
  }

  private decorations(
    editor: vscode.TextEditor,
    draft: Draft,
  ): [vscode.Range[], vscode.DecorationOptions[][]] {
    const old: vscode.Range[] = [];
    const runs: vscode.DecorationOptions[][] = this.runs.map(() => []);
    const tabSize = Number(editor.options.tabSize ?? 4);
    for (const hole of draft.holes) {
      const range = rangeOf(hole.range);
      linesIn(editor.document, range).forEach((part, index, parts) => {
        if (!part.isEmpty && hole.pieces.length > 0) {
          old.push(part);
        }
        const line = [...(linesOf(hole.pieces)[index] ?? [])];
        const more = linesTooMany(hole);
        if (index === parts.length - 1 && more > 0) {
          line.push({ text: ` ⏎ ${more} more line${more === 1 ? "" : "s"}`, looks: "more" });
        }
        const place = new vscode.Range(part.end, part.end);
        together(line).forEach((run, number) => {
          const margin = number === 0 && !part.isEmpty ? { margin: "0 0 0 1ch" } : {};
          const after = { ...LOOKS[run.looks], ...frame(run.looks), ...margin, contentText: drawn(run, tabSize) };
          runs[number]?.push({ range: place, renderOptions: { after } });
        });
      });
    }
    return [old, runs];
  }

  private set(editor: vscode.TextEditor, old: vscode.Range[], runs: vscode.DecorationOptions[][]): void {
    editor.setDecorations(this.old, old);
    this.runs.forEach((type, number) => editor.setDecorations(type, runs[number] ?? []));
  }
}

/** Return the runs with neighbours that look the same made one, and no more than can be drawn. */
function together(runs: readonly Run[]): readonly Run[] {
  const result: Run[] = [];
  for (const run of runs) {
    const last = result.at(-1);
    if (last !== undefined && (last.looks === run.looks || result.length === RUNS)) {
      result[result.length - 1] = { ...last, text: last.text + run.text };
    } else {
      result.push(run);
    }
  }
  return result;
}

/** Return a range's part on each of its lines; the indentation of the later ones is none of it. */
function linesIn(document: vscode.TextDocument, range: vscode.Range): readonly vscode.Range[] {
  const parts: vscode.Range[] = [];
  for (let line = range.start.line; line <= range.end.line; line += 1) {
    const { range: whole, firstNonWhitespaceCharacterIndex: indented } = document.lineAt(line);
    const text = line === range.start.line ? whole : whole.with(new vscode.Position(line, indented));
    const end = line === range.end.line ? range.end : whole.end;
    parts.push(range.intersection(text) ?? new vscode.Range(end, end));
  }
  return parts;
}
