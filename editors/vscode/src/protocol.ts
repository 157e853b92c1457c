// The `frostline/*` messages, as server/frostline/lsp/extension.py has them. A test compares the two:
// change that file, then `pytest tests/vscode/test_protocol.py --update`.

export const VERSION = 1;

export const BEGIN = "frostline/begin";
export const PROVISIONAL = "frostline/provisional";
export const STATE = "frostline/state";
export const ACCEPT = "frostline/accept";
export const APPLIED = "frostline/applied";
export const PIN = "frostline/pin";
export const REFINE = "frostline/refine";
export const REJECT = "frostline/reject";
export const BACK = "frostline/back";
export const STATUS = "frostline/status";

export type IntentName = "infill" | "rewrite" | "skeleton" | "repair";
export type Scope = "all" | "stable" | "hole" | "line" | "word";
export type PieceState = "open" | "draft" | "stable";
export type SessionState = "drafting" | "ready" | "committing" | "committed" | "refused" | "cancelled";
export type WorkerState = "off" | "starting" | "loading" | "ready" | "busy" | "lost";

/** A place in a document. */
export interface Position {
  readonly line: number;
  readonly character: number;
}

/** From `start` up to `end`. */
export interface Range {
  readonly start: Position;
  readonly end: Position;
}

/** A document and, where it matters, its version. */
export interface DocumentId {
  readonly uri: string;
  readonly version?: number;
}

/** Where to denoise: the client's range, which the server may snap to syntax. */
export interface HoleAsked {
  readonly range: Range;
}

/** `frostline/begin`, a request. Answered by `Begun`. */
export interface Begin {
  readonly textDocument: DocumentId;
  readonly holes: HoleAsked[];
  readonly intent?: IntentName;
  readonly instruction?: string;
  readonly strength?: number;
  readonly length?: number;
  readonly steps?: number;
  readonly seed?: number;
  readonly budgetMs?: number;
  readonly commit?: "manual" | "converged";
}

/** Why something was refused: a code for programs, a sentence for people. */
export interface Told {
  readonly code: string;
  readonly message: string;
}

/** A hole as it is denoised, snapped to syntax. */
export interface HoleBegun {
  readonly range: Range;
}

/** The answer to begin: a session, or why there is none. */
export interface Begun {
  readonly session?: string;
  readonly holes?: HoleBegun[];
  readonly refusal?: Told;
}

/** A run of a draft. An open piece's text is the present best guess. */
export interface Piece {
  readonly text: string;
  readonly state: PieceState;
  readonly confidence?: number;
}

/** A hole's place in the document of `version`, and its draft. */
export interface HoleShown {
  readonly range: Range;
  readonly pieces: Piece[];
}

/** `frostline/provisional`, a notification: what to draw. Nothing of it is in the file. */
export interface Provisional {
  readonly session: string;
  readonly uri: string;
  readonly version: number;
  readonly step: number;
  readonly steps: number;
  readonly holes: HoleShown[];
}

/** `frostline/state`, a notification. */
export interface StateTold {
  readonly session: string;
  readonly state: SessionState;
  readonly refusal?: Told;
  readonly next?: Begun;
  readonly metrics?: Record<string, unknown>;
}

/** `frostline/accept`, a request. Answered by `Accepted`. */
export interface Accept {
  readonly session: string;
  readonly scope?: Scope;
  readonly hole?: number;
  readonly anyway?: boolean;
  readonly key?: string;
}

/** A versioned WorkspaceEdit for the client to apply as one undo step, or a refusal. */
export interface Accepted {
  readonly edit?: Record<string, unknown>;
  readonly refusal?: Told;
}

/** `frostline/applied`, a notification of the client after its edit. */
export interface Applied {
  readonly session: string;
  readonly version: number;
  readonly applied?: boolean;
}

/** `frostline/pin`, a request: that provisional text freezes, the rest is denoised again. */
export interface Pin {
  readonly session: string;
  readonly hole: number;
  readonly span: [number, number];
}

/** `frostline/refine`, a request: again, keeping pins. */
export interface Refine {
  readonly session: string;
  readonly instruction?: string;
  readonly strength?: number;
  readonly seed?: number;
}

/** `frostline/back`, a request: an earlier draft of the session, 1 for the one before. */
export interface Back {
  readonly session: string;
  readonly by?: number;
}

/** `frostline/reject`, a request: the draft goes, the file was never touched. */
export interface Reject {
  readonly session: string;
}

/** `frostline/status`, a request without parameters and a notification. */
export interface StatusTold {
  readonly worker: WorkerState;
  readonly model?: string;
  readonly device?: string;
  readonly progress?: number;
  readonly memory?: number;
  readonly cannot?: string[];
  readonly message?: string;
}
