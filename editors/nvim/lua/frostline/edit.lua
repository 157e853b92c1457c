--- An edit of the server, made as one undo step, without keys, and without a change of mode. The edit
--- is taken as it is sent: nothing is derived here. It is compared: the version, and that nothing
--- outside of a hole is touched.

local client_of = require('frostline.client')

local M = {}

local space = vim.api.nvim_create_namespace('frostline.edit')
local line_ends = { unix = '\n', dos = '\r\n', mac = '\r' }

---@class frostline.Change
---@field first integer[] row and byte
---@field last integer[] row and byte
---@field lines string[]

local function before(one, other)
  return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2])
end

local function within(change, holes)
  for _, hole in ipairs(holes) do
    if not before(change.first, hole.first) and not before(hole.last, change.last) then
      return true
    end
  end
  return false
end

local function change_of(client, buf, edit)
  local first = { client_of.place(client, buf, edit.range.start) }
  local last = { client_of.place(client, buf, edit.range['end']) }
  local text = edit.newText
  if edit.range['end'].line >= vim.api.nvim_buf_line_count(buf) then
    text = text:gsub('\r?\n$', '') -- Neovim's last line has its end without being asked
  end
  local lines = vim.split(text, line_ends[vim.bo[buf].fileformat], { plain = true })
  return { first = first, last = last, lines = lines }
end

--- A step of its own in the undo tree: what is typed before and after it is not part of it.
local function break_undo(buf)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

--- Put the cursor behind what was written, where this window shows it.
local function cursor_behind(buf, row, column)
  if vim.api.nvim_get_current_buf() ~= buf then
    return
  end
  if vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
    local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
    if column > 0 then
      column = column - 1 + vim.str_utf_start(line, column) -- on its last character
    end
  end
  vim.api.nvim_win_set_cursor(0, { row + 1, column })
end

--- Make changes, each in terms of the text as it is, in one undo step; the cursor goes to the end of
--- the last.
---@param buf integer
---@param changes frostline.Change[]
function M.make(buf, changes)
  table.sort(changes, function(one, other)
    return before(other.first, one.first)
  end)
  break_undo(buf)
  local last = changes[1].last
  local mark = vim.api.nvim_buf_set_extmark(buf, space, last[1], last[2], {})
  for _, change in ipairs(changes) do
    local from, to = change.first, change.last
    vim.api.nvim_buf_set_text(buf, from[1], from[2], to[1], to[2], change.lines)
  end
  local place = vim.api.nvim_buf_get_extmark_by_id(buf, space, mark, {})
  vim.api.nvim_buf_del_extmark(buf, space, mark)
  break_undo(buf)
  cursor_behind(buf, place[1], place[2])
end

--- Make a WorkspaceEdit of one document.
---@param buf integer
---@param client vim.lsp.Client
---@param edit lsp.WorkspaceEdit
---@param holes { first: integer[], last: integer[] }[] where the draft's holes are now
---@return string? why it was not made
function M.apply(buf, client, edit, holes)
  local document = (edit.documentChanges or {})[1]
  if not document or #edit.documentChanges > 1 or document.textDocument.uri ~= vim.uri_from_bufnr(buf) then
    return 'it is for another file'
  end
  if document.textDocument.version ~= client_of.version(buf) then
    return 'the text changed meanwhile'
  end
  if not vim.bo[buf].modifiable then
    return 'this buffer may not be changed'
  end
  local changes = {}
  for _, one in ipairs(document.edits) do
    local change = change_of(client, buf, one)
    if not within(change, holes) then
      return 'it reaches outside of its hole'
    end
    table.insert(changes, change)
  end
  if #changes == 0 then
    return
  end
  M.make(buf, changes)
end

--- Answer workspace/applyEdit. Neovim 0.11 answers "applied" also where it made no edit, because it
--- was for an older text.
---@param params lsp.ApplyWorkspaceEditParams
function M.asked(params, ctx)
  for _, change in ipairs(params.edit.documentChanges or {}) do
    local buf = vim.uri_to_bufnr(change.textDocument.uri)
    if change.textDocument.version ~= client_of.version(buf) then
      return { applied = false, failureReason = 'the text changed' }
    end
  end
  return vim.lsp.handlers['workspace/applyEdit'](nil, params, ctx)
end

return M
