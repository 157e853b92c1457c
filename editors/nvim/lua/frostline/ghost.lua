--- Ghost text at the cursor, beside the file until it is accepted. Where Neovim has
--- `vim.lsp.inline_completion` (0.12), that asks and draws while you type; asking on a key, and
--- taking a line or a word, is done here for every Neovim.

local client_of = require('frostline.client')

local M = {}

local space = vim.api.nvim_create_namespace('frostline.ghost')
local core = vim.lsp.inline_completion

---@class frostline.Ghost ghost text and the line that it is for
---@field buf integer
---@field row integer
---@field before string the line up to the text's place
---@field text string
---@field swallowed string what it replaces
---@field behind string the line from there on
---@field typed integer bytes of it that were typed since
---@field tick integer

---@type frostline.Ghost?
local ghost
local asking ---@type { client: vim.lsp.Client, id: integer }?
local timer = assert(vim.uv.new_timer())
local dismissed = {} ---@type table<integer, integer> buffer: changedtick
local last = { buf = -1, row = -1, length = 0, lines = 0 } -- the line as it was, to tell edits apart
local completed = false

local function config()
  return require('frostline.config').get()
end

--- Whether a completion menu is open: Neovim's own, blink.cmp's or nvim-cmp's.
local function menu_open()
  if vim.fn.pumvisible() == 1 then
    return true
  end
  local blink, cmp = package.loaded['blink.cmp'], package.loaded['cmp']
  return (blink and blink.is_menu_visible and blink.is_menu_visible())
    or (cmp and cmp.visible and cmp.visible())
    or false
end

--- Whether Neovim's own inline completion shows something here. It has no question for that.
local function core_shown()
  local theirs = core and vim.api.nvim_get_namespaces()['nvim.lsp.inline_completion']
  return theirs ~= nil and #vim.api.nvim_buf_get_extmarks(0, theirs, 0, -1, { limit = 1 }) > 0
end

--- Have Neovim's own inline completion forget what it shows: it is accepted, and nothing made of it.
local function hide_core()
  return core ~= nil and core_shown() and core.get({ on_accept = function() end })
end

local function erase()
  if ghost and vim.api.nvim_buf_is_valid(ghost.buf) then
    vim.api.nvim_buf_clear_namespace(ghost.buf, space, 0, -1)
  end
end

--- Take ghost text away, and stop asking for more.
---@param buf? integer only there
function M.clear(buf)
  if buf and ghost and ghost.buf ~= buf then
    return
  end
  timer:stop()
  if asking then
    asking.client:cancel_request(asking.id)
    asking = nil
  end
  erase()
  ghost = nil
end

local function draw()
  erase()
  local open = menu_open()
  if not ghost or (open and config().popup == 'hide') then
    return
  end
  local lines = vim.split(ghost.text:sub(ghost.typed + 1), '\n', { plain = true })
  local function chunk(text)
    return { { vim.fn.strtrans((text:gsub('\t', (' '):rep(vim.bo[ghost.buf].tabstop)))), 'FrostlineDraft' } }
  end
  local below = vim.tbl_map(chunk, vim.list_slice(lines, 2))
  local first = chunk(lines[1])
  if open and #below > 0 then
    -- The menu lies over the lines below the cursor; how many there are is said beside it.
    table.insert(first, { (' (+%d lines)'):format(#below), 'FrostlineLabel' })
    below = {}
  end
  vim.api.nvim_buf_set_extmark(ghost.buf, space, ghost.row, #ghost.before + ghost.typed, {
    virt_text = first,
    virt_text_pos = 'inline',
    virt_lines = below,
    strict = false,
  })
end

--- Whether the text is still what the ghost text was for, or what it says was typed along.
local function current()
  if not ghost or vim.api.nvim_get_current_buf() ~= ghost.buf then
    return false
  end
  if vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
    return false
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  local typed = line:sub(#ghost.before + 1, column)
  local same = row - 1 == ghost.row
    and line == ghost.before .. typed .. ghost.swallowed .. ghost.behind
    and vim.startswith(ghost.text, typed)
    and #typed < #ghost.text
  local tick = vim.api.nvim_buf_get_changedtick(ghost.buf)
  if not same or (tick ~= ghost.tick and #typed == ghost.typed) then
    return false -- another change, somewhere
  end
  ghost.typed, ghost.tick = #typed, tick
  return true
end

local function checked()
  if config().popup == 'hide' and menu_open() then
    hide_core()
  end
  if ghost and not current() then
    M.clear()
  elseif ghost then
    draw()
  end
end

---@return boolean
function M.shown()
  if ghost and not current() then
    M.clear()
  end
  local hidden = config().popup == 'hide' and menu_open()
  return (ghost ~= nil or core_shown()) and not hidden
end

--- Take an item of the server for the present line.
local function adopt(buf, first, stop, text)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  if first[1] ~= row - 1 then
    return
  end
  ghost = {
    buf = buf,
    row = first[1],
    before = line:sub(1, first[2]),
    text = (text:gsub('\r\n?', '\n')),
    swallowed = line:sub(column + 1, stop),
    behind = line:sub(math.max(stop, column) + 1),
    typed = column - first[2],
    tick = vim.api.nvim_buf_get_changedtick(buf),
  }
  if not current() then
    ghost = nil
  end
end

--- Ask for ghost text at the cursor.
---@param automatic? boolean the user is typing and did not ask
function M.ask(automatic)
  M.clear()
  hide_core()
  local buf = vim.api.nvim_get_current_buf()
  local client, why = client_of.serving(buf)
  if not client then
    return automatic or require('frostline.status').say(why, 'WarningMsg')
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local asked = {
    textDocument = { uri = vim.uri_from_bufnr(buf), version = client_of.version(buf) },
    position = client_of.position(client, buf, row - 1, column),
    context = { triggerKind = automatic and 2 or 1 },
  }
  local _, id = client:request('textDocument/inlineCompletion', asked, function(err, result)
    asking = nil
    local item = not err and result and result.items[1]
    local same = vim.api.nvim_get_current_buf() == buf
      and vim.api.nvim_buf_get_changedtick(buf) == tick
      and vim.deep_equal(vim.api.nvim_win_get_cursor(0), { row, column })
    if item and same then
      local first = { client_of.place(client, buf, item.range.start) }
      local _, stop = client_of.place(client, buf, item.range['end'])
      adopt(buf, first, stop, item.insertText)
      draw()
    end
  end, buf)
  asking = id and { client = client, id = id } or nil
end

--- A word with the blanks ahead of it, or a run of what is neither; or all up to a line's end.
local function part(text, scope)
  if scope == 'word' then
    return vim.fn.matchstr(text, [=[^\_s*\%(\k\+\|[^[:keyword:][:space:]]\+\)\|^\_s\+]=])
  end
  return text:match('^[^\n]*\n') or text
end

local function take(scope)
  if not ghost or not current() then
    return M.clear()
  end
  local left = ghost.text:sub(ghost.typed + 1)
  local taken = (scope == 'word' or scope == 'line') and part(left, scope) or left
  local whole = #taken == #left
  local column = #ghost.before + ghost.typed
  local stop = column + (whole and #ghost.swallowed or 0)
  local lines = vim.split(taken, '\n', { plain = true })
  local buf, row, rest = ghost.buf, ghost.row, ghost
  erase()
  ghost = nil
  require('frostline.edit').make(buf, {
    { first = { row, column }, last = { row, stop }, lines = lines },
  })
  if not whole then
    -- What is left needs no new question.
    local at = vim.api.nvim_win_get_cursor(0)
    local line = vim.api.nvim_get_current_line()
    rest.row, rest.before, rest.text, rest.typed = at[1] - 1, line:sub(1, at[2]), left:sub(#taken + 1), 0
    rest.tick = vim.api.nvim_buf_get_changedtick(buf)
    ghost = rest
    draw()
  end
end

--- Accept what is shown, or a part of it.
---@param scope frostline.Scope
---@return boolean whether there was something
function M.accept(scope)
  if ghost and current() then
    take(scope)
    return true
  end
  if not core or vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
    return false
  end
  return core.get({
    on_accept = function(item)
      if type(item.insert_text) ~= 'string' or not item.range then
        return
      end
      local range = item.range
      -- Its ranges were two positions first, and are four numbers now.
      local row = range.start_row or range.start.row
      local from, to = range.start_col or range.start.col, range.end_col or range.end_.col
      adopt(vim.api.nvim_get_current_buf(), { row, from }, to, item.insert_text)
      take(scope)
    end,
  })
end

--- Take ghost text away until the text changes.
---@return boolean whether there was any
function M.dismiss()
  local buf = vim.api.nvim_get_current_buf()
  local had = hide_core() or ghost ~= nil
  dismissed[buf] = vim.api.nvim_buf_get_changedtick(buf)
  M.clear()
  return had
end

--- What kind of change the line went through since it was looked at last.
---@return 'typed'|'deleted'|'pasted'|'completed'|nil
local function kind_of_change()
  local buf, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
  local now = { buf = buf, row = row, length = #vim.api.nvim_get_current_line() }
  now.lines = vim.api.nvim_buf_line_count(buf)
  local before = last
  last = now
  if completed then
    completed = false
    return 'completed'
  end
  if before.buf ~= buf then
    return nil
  end
  if now.lines ~= before.lines then
    return now.lines == before.lines + 1 and 'typed' or now.lines < before.lines and 'deleted' or 'pasted'
  end
  local grown = now.length - before.length
  if row ~= before.row or grown == 0 then
    return nil
  end
  -- A pair of brackets comes in at once, and a character can have four bytes.
  return grown < 0 and 'deleted' or grown <= 4 and 'typed' or 'pasted'
end

--- Whether the present moment is one to ask in unasked.
local function wanted(kind)
  local buf = vim.api.nvim_get_current_buf()
  return kind ~= nil
    and config().triggers[kind]
    and client_of.serving(buf) ~= nil
    and dismissed[buf] ~= vim.api.nvim_buf_get_changedtick(buf)
    and require('frostline.session').of(buf) == nil
end

local latest -- the kind of the latest change, for Neovim's own client

local function changed()
  checked()
  latest = kind_of_change()
  if core or config().ghost ~= 'auto' or ghost or not wanted(latest) then
    return
  end
  timer:start(config().ghost_delay, 0, vim.schedule_wrap(function()
    if vim.api.nvim_get_mode().mode:sub(1, 1) == 'i' and not ghost then
      M.ask(true)
    end
  end))
end

--- Neovim's own inline completion asks at every move of the cursor. Let through what the triggers want.
local function gate(client)
  local request = client.request
  client.request = function(self, method, params, ...)
    local unasked = method == 'textDocument/inlineCompletion' and params.context.triggerKind == 2
    if unasked and (ghost or not wanted(latest)) then
      return false
    end
    return request(self, method, params, ...)
  end
end

---@param client vim.lsp.Client
---@param buf integer
function M.attached(client, buf)
  local group = vim.api.nvim_create_augroup('frostline.ghost.' .. buf, {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  on('InsertEnter', kind_of_change)
  on({ 'TextChangedI', 'TextChangedP' }, changed)
  on({ 'CursorMovedI', 'CompleteChanged' }, vim.schedule_wrap(checked))
  on({ 'InsertLeave', 'BufLeave' }, function()
    M.clear()
  end)
  on('CompleteDone', function()
    completed = vim.v.event.reason == 'accept'
    vim.schedule(checked)
  end)
  local menus = { 'BlinkCmpMenuOpen', 'BlinkCmpMenuClose', 'CmpMenuOpened', 'CmpMenuClosed' }
  vim.api.nvim_create_autocmd('User', { group = group, pattern = menus, callback = checked })
  if core and config().ghost == 'auto' then
    gate(client)
    core.enable(true, { bufnr = buf })
  end
end

---@param buf integer
function M.detached(buf)
  M.clear(buf)
  if core then
    core.enable(false, { bufnr = buf })
  end
  pcall(vim.api.nvim_del_augroup_by_name, 'frostline.ghost.' .. buf)
  dismissed[buf] = nil
end

return M
