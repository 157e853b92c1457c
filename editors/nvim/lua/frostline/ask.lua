--- What is asked of the server, from what the user selected: a motion, a selection, lines, the cursor.
--- Rows and bytes count from 0 here.

local M = {}

local function line_at(row)
  return vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ''
end

--- Holes between two places that getpos() gives; one for each line of a block.
---@param from string
---@param to string
---@param kind string as in getregtype(): v, V, or a block
local function region(from, to, kind)
  local block = kind:byte() == 22
  local parts = vim.fn.getregionpos(vim.fn.getpos(from), vim.fn.getpos(to), {
    type = kind,
    exclusive = false,
    eol = true,
  })
  local function hole(first, last)
    local row, column = last[2] - 1, last[3]
    local line = line_at(row)
    if kind == 'V' then
      return { first = { first[2] - 1, 0 }, last = { row, #line } }
    end
    if column > 0 and column <= #line then
      column = column + vim.str_utf_end(line, column) -- a selection includes its last character
    end
    return { first = { first[2] - 1, math.max(first[3] - 1, 0) }, last = { row, math.min(column, #line) } }
  end
  if not block then
    return { hole(parts[1][1], parts[#parts][2]) }
  end
  return vim.tbl_map(function(part)
    return hole(part[1], part[2])
  end, parts)
end

--- In normal mode the cursor cannot stand behind a line's last character: there, behind it is meant.
local function cursor()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  local insert = vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
  if not insert and #line > 0 and column + 1 + vim.str_utf_end(line, column + 1) == #line then
    column = #line
  end
  return { first = { row - 1, column }, last = { row - 1, column } }
end

-- What the last rewrite was told, which `.` says again.
local wish = {}

local function rewrite(holes)
  local strength = require('frostline.config').get().strength
  local asked = vim.tbl_extend('keep', { intent = 'rewrite' }, wish, { strength = strength })
  require('frostline.session').begin(vim.api.nvim_get_current_buf(), holes, asked)
end

--- An operator for rewriting: the keys that an expression mapping gives.
---@return string
function M.operator()
  wish = {}
  vim.go.operatorfunc = "v:lua.require'frostline.ask'.rewrite_motion"
  return 'g@'
end

--- Called by Neovim with what the motion or the selection covered, also for `.`.
---@param kind 'line'|'char'|'block'
function M.rewrite_motion(kind)
  local kinds = { line = 'V', char = 'v', block = '\22' }
  rewrite(region("'[", "']", kinds[kind]))
end

--- Rewrite the lines of a command's range, or the last selection where they are its lines.
---@param first integer 1-based
---@param last integer 1-based
---@param options table
function M.rewrite(first, last, options)
  wish = options
  local selected = vim.fn.line("'<") == first and vim.fn.line("'>") == last
  if selected then
    return rewrite(region("'<", "'>", vim.fn.visualmode()))
  end
  rewrite({ { first = { first - 1, 0 }, last = { last - 1, #line_at(last - 1) } } })
end

--- Fill the gap at the cursor, the body around it, or mend what does not parse there.
---@param intent frostline.IntentName
---@param options table
function M.at_cursor(intent, options)
  local asked = vim.tbl_extend('keep', { intent = intent }, options)
  require('frostline.session').begin(vim.api.nvim_get_current_buf(), { cursor() }, asked)
end

return M
