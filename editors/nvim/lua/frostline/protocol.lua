--- The `frostline/*` messages, as server/frostline/lsp/extension.py has them. A test compares the two:
--- change that file, then `pytest tests/editors/test_protocol.py --update`.

local M = {}

M.VERSION = 1

M.BEGIN = 'frostline/begin'
M.PROVISIONAL = 'frostline/provisional'
M.STATE = 'frostline/state'
M.ACCEPT = 'frostline/accept'
M.APPLIED = 'frostline/applied'
M.PIN = 'frostline/pin'
M.REFINE = 'frostline/refine'
M.REJECT = 'frostline/reject'
M.BACK = 'frostline/back'
M.STATUS = 'frostline/status'

---@alias frostline.IntentName 'infill'|'rewrite'|'skeleton'|'repair'
---@alias frostline.Scope 'all'|'stable'|'hole'|'line'|'word'
---@alias frostline.PieceState 'open'|'draft'|'stable'
---@alias frostline.SessionState 'drafting'|'ready'|'committing'|'committed'|'refused'|'cancelled'
---@alias frostline.WorkerState 'off'|'starting'|'loading'|'ready'|'busy'|'lost'

---@class frostline.Position A place in a document.
---@field line integer
---@field character integer

---@class frostline.Range From `start` up to `end`.
---@field start frostline.Position
---@field end frostline.Position

---@class frostline.DocumentId A document and, where it matters, its version.
---@field uri string
---@field version? integer

---@class frostline.HoleAsked Where to denoise: the client's range, which the server may snap to syntax.
---@field range frostline.Range

---@class frostline.Begin `frostline/begin`, a request. Answered by `Begun`.
---@field textDocument frostline.DocumentId
---@field holes frostline.HoleAsked[]
---@field intent? frostline.IntentName
---@field instruction? string
---@field strength? number
---@field length? integer
---@field steps? integer
---@field seed? integer
---@field budgetMs? integer
---@field commit? 'manual'|'converged'

---@class frostline.Told Why something was refused: a code for programs, a sentence for people.
---@field code string
---@field message string

---@class frostline.HoleBegun A hole as it is denoised, snapped to syntax.
---@field range frostline.Range

---@class frostline.Begun The answer to begin: a session, or why there is none.
---@field session? string
---@field holes? frostline.HoleBegun[]
---@field refusal? frostline.Told

---@class frostline.Piece A run of a draft. An open piece's text is the present best guess.
---@field text string
---@field state frostline.PieceState
---@field confidence? number

---@class frostline.HoleShown A hole's place in the document of `version`, and its draft.
---@field range frostline.Range
---@field pieces frostline.Piece[]

---@class frostline.Provisional `frostline/provisional`, a notification: what to draw. Nothing of it is in the file.
---@field session string
---@field uri string
---@field version integer
---@field step integer
---@field steps integer
---@field holes frostline.HoleShown[]

---@class frostline.StateTold `frostline/state`, a notification.
---@field session string
---@field state frostline.SessionState
---@field refusal? frostline.Told
---@field next? frostline.Begun
---@field metrics? table<string, any>

---@class frostline.Accept `frostline/accept`, a request. Answered by `Accepted`.
---@field session string
---@field scope? frostline.Scope
---@field hole? integer
---@field anyway? boolean
---@field key? string

---@class frostline.Accepted A versioned WorkspaceEdit for the client to apply as one undo step, or a refusal.
---@field edit? table<string, any>
---@field refusal? frostline.Told

---@class frostline.Applied `frostline/applied`, a notification of the client after its edit.
---@field session string
---@field version integer
---@field applied? boolean

---@class frostline.Pin `frostline/pin`, a request: that provisional text freezes, the rest is denoised again.
---@field session string
---@field hole integer
---@field span [integer, integer]

---@class frostline.Refine `frostline/refine`, a request: again, keeping pins.
---@field session string
---@field instruction? string
---@field strength? number
---@field seed? integer

---@class frostline.Back `frostline/back`, a request: an earlier draft of the session, 1 for the one before.
---@field session string
---@field by? integer

---@class frostline.Reject `frostline/reject`, a request: the draft goes, the file was never touched.
---@field session string

---@class frostline.StatusTold `frostline/status`, a request without parameters and a notification.
---@field worker frostline.WorkerState
---@field model? string
---@field device? string
---@field progress? number
---@field memory? integer
---@field cannot? string[]
---@field message? string

return M
