--- Live drafts: what the server says of them, and what the user wants of them. One at a time in a
--- buffer; state is kept by buffer, so windows and tab pages share it.

local client_of = require('frostline.client')
local draw = require('frostline.draw')
local edit = require('frostline.edit')
local protocol = require('frostline.protocol')
local status = require('frostline.status')

local M = {}

---@class frostline.Live
---@field id string
---@field buf integer
---@field state frostline.SessionState
---@field refusal? frostline.Told
---@field version integer the text's version that was drawn
---@field step integer
---@field steps integer
---@field drawn frostline.Drawn
---@field shown boolean

---@type table<integer, frostline.Live>
local by_buffer = {}

local live_states = { drafting = true, ready = true, committing = true }

local function find(id)
  for _, live in pairs(by_buffer) do
    if live.id == id then
      return live
    end
  end
end

--- The draft that is on offer in a buffer; 0 is the current one.
---@param buf integer
---@return frostline.Live?
function M.of(buf)
  buf = buf == 0 and vim.api.nvim_get_current_buf() or buf
  local live = by_buffer[buf]
  return live and live_states[live.state] and live or nil
end

--- A draft's state in words, or nil where there is none.
---@param buf integer
---@return string?
function M.words(buf)
  local live = M.of(buf)
  return live and live.drawn.label
end

local function label(live)
  if live.state == 'ready' then
    return live.refusal and 'draft ready, does not parse' or 'draft ready'
  end
  return live.steps > 0 and ('drafting %d/%d'):format(live.step, live.steps) or 'drafting'
end

local function new(id, buf)
  local shown = require('frostline.config').get().show == 'draft'
  local drawn = { holes = {}, marks = {}, heights = {}, label = '' }
  local live = { id = id, buf = buf, state = 'drafting', version = -1, step = 0, steps = 0 }
  live.drawn, live.shown = drawn, shown
  by_buffer[buf] = live
  return live
end

--- Draw what was last sent, where the holes are now.
local function redraw(live)
  live.drawn.label = label(live)
  if #live.drawn.marks > 0 then
    draw.draw(live.buf, live.drawn, draw.places(live.buf, live.drawn), live.shown)
  end
  status.changed()
end

--- Draw holes that were sent for a version of the text; for any other than the present one they would
--- stand in the wrong place, so those wait for the next.
local function draw_sent(live, version, holes)
  local client = client_of.of(live.buf)
  if not client or version ~= client_of.version(live.buf) then
    return
  end
  live.version = version
  local places = {}
  for index, hole in ipairs(holes) do
    places[index] = {
      first = { client_of.place(client, live.buf, hole.range.start) },
      last = { client_of.place(client, live.buf, hole.range['end']) },
    }
  end
  if #holes ~= #live.drawn.holes then
    live.drawn.heights = {}
  end
  live.drawn.holes, live.drawn.marks = holes, {}
  live.drawn.label = label(live)
  draw.draw(live.buf, live.drawn, places, live.shown)
  status.changed()
end

--- Take a session that began: its holes are shown until there is a draft for them.
local function begun(buf, version, answer)
  if (M.of(buf) or {}).id == answer.session then
    return
  end
  local holes = vim.tbl_map(function(hole)
    return { range = hole.range, pieces = {} }
  end, answer.holes or {})
  draw_sent(new(answer.session, buf), version, holes)
  status.announce('drafting', 'drafting')
end

local function forget(live, state)
  live.state = state
  draw.clear(live.buf)
  live.drawn.marks = {}
  status.changed()
end

--- Draw everything again, as a window has another size or shows another buffer.
function M.draw_again()
  for buf, live in pairs(by_buffer) do
    if live_states[live.state] and vim.api.nvim_buf_is_loaded(buf) then
      redraw(live)
    end
  end
end

-- --- what the server says ------------------------------------------------------------------------

---@param params frostline.Provisional
function M.provisional(params)
  local buf = vim.uri_to_bufnr(params.uri)
  if not vim.api.nvim_buf_is_loaded(buf) or not require('frostline.config').enabled(buf) then
    return
  end
  local live = by_buffer[buf]
  if not live or live.id ~= params.session then
    live = new(params.session, buf)
  end
  if params.steps > 0 then
    live.step, live.steps = params.step, params.steps
  end
  draw_sent(live, params.version, params.holes)
end

---@param params frostline.StateTold
function M.state(params)
  local live = find(params.session)
  if not live then
    return
  end
  local before = live.state
  live.state, live.refusal = params.state, params.refusal
  if live_states[params.state] then
    if params.state == 'drafting' and before ~= 'drafting' then
      live.step, live.steps = 0, 0
    end
    redraw(live)
  else
    forget(live, params.state)
  end
  if params.state == before and params.state == 'drafting' then
    return
  end
  local why = params.refusal and params.refusal.code ~= 'replaced' and params.refusal.message
  local words = live_states[params.state] and label(live) or params.state
  status.announce(params.state, why and ('%s: %s'):format(words, why) or words)
  local data = { buf = live.buf, state = params.state, metrics = params.metrics }
  vim.api.nvim_exec_autocmds('User', { pattern = 'FrostlineState', modeline = false, data = data })
  -- The next block of a long rewrite, in the text as it is now.
  if params.next and params.next.session then
    begun(live.buf, client_of.version(live.buf), params.next)
  end
end

--- The server is gone, and its draft with it. The text was never touched.
---@param buf integer
function M.lost(buf)
  local live = M.of(buf)
  if live then
    forget(live, 'refused')
    status.announce('refused', 'the server stopped; the text is as it was')
  end
  by_buffer[buf] = nil
end

--- Let go of the drafts whose server is gone.
function M.check()
  for buf in pairs(by_buffer) do
    local client = client_of.of(buf)
    if not client or client:is_stopped() then
      M.lost(buf)
    end
  end
end

-- --- what the user wants -------------------------------------------------------------------------

local function refused(result)
  if result.refusal then
    local unsound = result.refusal.code == 'unsound'
    -- Short, so that what to do is seen and not cut off.
    local words = unsound and 'does not parse; :Frostline! accept takes it anyway' or result.refusal.message
    status.say('Frostline: ' .. words, 'WarningMsg')
    return true
  end
  return false
end

--- Ask for a draft.
---@param buf integer
---@param holes { first: integer[], last: integer[] }[] rows and bytes, from 0
---@param options? table fields of `frostline/begin`
function M.begin(buf, holes, options)
  buf = buf == 0 and vim.api.nvim_get_current_buf() or buf
  local client, why = client_of.serving(buf)
  if not client then
    return status.say(why, 'WarningMsg')
  end
  if not client_of.countable(buf) then
    local words = 'this buffer has carriage returns inside lines, which Neovim does not count as line ends'
    return status.say('Frostline: ' .. words, 'WarningMsg')
  end
  local asked = vim.tbl_extend('force', options or {}, {
    textDocument = { uri = vim.uri_from_bufnr(buf), version = client_of.version(buf) },
    holes = vim.tbl_map(function(hole)
      return {
        range = {
          start = client_of.position(client, buf, unpack(hole.first)),
          ['end'] = client_of.position(client, buf, unpack(hole.last)),
        },
      }
    end, holes),
  })
  local version = asked.textDocument.version
  require('frostline.ghost').clear(buf)
  client_of.request(buf, protocol.BEGIN, asked, function(result)
    if not refused(result) then
      begun(buf, version, result)
    end
  end)
end

local function with_live(buf, then_do)
  local live = M.of(buf)
  if live then
    return then_do(live)
  end
  status.say('Frostline: there is no draft in this buffer', 'WarningMsg')
end

local keys = 0

--- Put a draft, or a part of it, into the buffer: one edit, one undo step.
---@param buf integer
---@param scope frostline.Scope
---@param options? { hole?: integer, anyway?: boolean }
function M.accept(buf, scope, options)
  with_live(buf, function(live)
    keys = keys + 1
    local asked = vim.tbl_extend('force', options or {}, {
      session = live.id,
      scope = scope,
      key = ('%d.%d'):format(vim.fn.getpid(), keys),
    })
    client_of.request(buf, protocol.ACCEPT, asked, function(result)
      if refused(result) or not result.edit then
        return
      end
      local client = client_of.of(buf)
      if not client then
        return
      end
      local places = draw.places(buf, live.drawn)
      local why = edit.apply(buf, client, result.edit, places)
      if why then
        status.say('Frostline: not put in: ' .. why, 'WarningMsg')
      end
      client:notify(protocol.APPLIED, {
        session = live.id,
        version = client_of.version(buf),
        applied = why == nil,
      })
    end)
  end)
end

local function ask(buf, method, params)
  with_live(buf, function(live)
    params.session = live.id
    client_of.request(buf, method, params, refused)
  end)
end

---@param buf integer
function M.reject(buf)
  with_live(buf, function(live)
    client_of.request(buf, protocol.REJECT, { session = live.id }, refused)
    forget(live, 'cancelled')
  end)
end

---@param buf integer
---@param wish { instruction?: string, strength?: number }
function M.refine(buf, wish)
  ask(buf, protocol.REFINE, wish)
end

---@param buf integer
function M.back(buf)
  ask(buf, protocol.BACK, { by = 1 })
end

--- The text of each hole's draft as it was last sent.
---@param buf integer
---@return string[]
function M.texts(buf)
  local live = M.of(buf)
  return vim.tbl_map(function(hole)
    return table.concat(vim.tbl_map(function(piece)
      return piece.text
    end, hole.pieces))
  end, live and live.drawn.holes or {})
end

--- Freeze a stretch of the draft and have the rest denoised again.
---@param buf integer
---@param text string what is to stay; its first place in the draft is meant
function M.pin(buf, text)
  for index, draft in ipairs(M.texts(buf)) do
    local first, last = draft:find(text, 1, true)
    if first and text ~= '' then
      local span = { vim.str_utfindex(draft, 'utf-32', first - 1), vim.str_utfindex(draft, 'utf-32', last) }
      return ask(buf, protocol.PIN, { hole = index - 1, span = span })
    end
  end
  with_live(buf, function()
    status.say(('Frostline: the draft has no %q'):format(text), 'WarningMsg')
  end)
end

--- Show the draft itself, or only that there is one, for this draft.
---@param buf integer
---@param shown boolean
function M.show(buf, shown)
  with_live(buf, function(live)
    live.shown = shown
    redraw(live)
  end)
end

--- The hole that the cursor is in or beside, counted from 0; nil for the first.
---@param buf integer
---@return integer?
function M.hole_at_cursor(buf)
  local live = M.of(buf)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  for index, place in ipairs(live and draw.places(buf, live.drawn) or {}) do
    if place.first[1] <= row and row <= place.last[1] then
      return index - 1
    end
  end
end

return M
