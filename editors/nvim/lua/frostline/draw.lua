--- A live draft beside the text, by extmarks only: the buffer, its undo tree and its changedtick stay
--- as they are. From blurred to clear: an open slot is a shade as wide as its best guess, a draft is
--- lighter than text, what is stable is firm.
---
--- Deliberately absent: overlays. They lie at byte columns, over inlay hints and wrapped lines.

local M = {}

M.space = vim.api.nvim_create_namespace('frostline.draft')

---@class frostline.Drawn a draft as it was last drawn
---@field holes frostline.HoleShown[]
---@field marks integer[] the extmark of each hole
---@field heights integer[] lines that each hole has been given below; they are never taken back
---@field label string

-- Highlight groups: the group whose colours they take, and what makes them different without colour.
local groups = {
  FrostlineOpen = { from = 'NonText' },
  FrostlineDraft = { from = 'Comment', italic = true },
  FrostlineStable = { from = 'Normal', bold = true },
  FrostlineOld = { from = 'NonText', strikethrough = true },
  FrostlineFrozen = { from = 'NonText' },
  FrostlineLabel = { from = 'NonText', italic = true },
}
local states = { open = 'FrostlineOpen', draft = 'FrostlineDraft', stable = 'FrostlineStable' }

-- What was set here. A group that looks otherwise is the user's, and stays.
local ours = {}

local function highlights()
  for name, style in pairs(groups) do
    local now = vim.api.nvim_get_hl(0, { name = name })
    if vim.tbl_isempty(now) or vim.deep_equal(now, ours[name]) then
      local from = vim.api.nvim_get_hl(0, { name = style.from, link = false })
      local look = { italic = style.italic, bold = style.bold, strikethrough = style.strikethrough }
      look.cterm = vim.deepcopy(look)
      look.fg = from.fg
      -- Neovim's own colours name no terminal colour for some groups; 8 is grey, dark or light.
      look.ctermfg = from.ctermfg or (style.from ~= 'Normal' and 8 or nil)
      vim.api.nvim_set_hl(0, name, look)
      ours[name] = vim.api.nvim_get_hl(0, { name = name })
    end
  end
end

local group

--- Set up highlights once, and again with each colour scheme.
function M.ready()
  if group then
    return
  end
  group = vim.api.nvim_create_augroup('frostline.draw', {})
  highlights()
  vim.api.nvim_create_autocmd('ColorScheme', { group = group, callback = highlights })
  vim.api.nvim_create_autocmd('OptionSet', { group = group, pattern = 'background', callback = highlights })
  vim.api.nvim_create_autocmd({ 'WinResized', 'BufWinEnter' }, {
    group = group,
    callback = function()
      require('frostline.session').draw_again()
    end,
  })
end

-- --- text ----------------------------------------------------------------------------------------

--- Text as cells: tabs as the buffer has them, and characters that cannot be seen as Neovim shows them.
local function visible(text, column, tabstop)
  local parts = {}
  for before, tab in text:gmatch('([^\t]*)(\t?)') do
    before = vim.fn.strtrans(before)
    column = column + vim.fn.strdisplaywidth(before)
    table.insert(parts, before)
    if tab ~= '' then
      local width = tabstop - column % tabstop
      table.insert(parts, (' '):rep(width))
      column = column + width
    end
  end
  return table.concat(parts), column
end

--- The lines of a draft, each a list of [text, group], from the column where the hole starts.
---@param pieces frostline.Piece[]
---@param column integer
---@param tabstop integer
---@param shade string
---@return [string, string][][]
local function lines_of(pieces, column, tabstop, shade)
  local lines = { {} }
  for _, piece in ipairs(pieces) do
    for number, text in ipairs(vim.split(piece.text, '\n', { plain = true })) do
      if number > 1 then
        table.insert(lines, {})
        column = 0
      end
      text, column = visible(text, column, tabstop)
      if piece.state == 'open' and shade ~= '' then
        text = shade:rep(vim.fn.strdisplaywidth(text))
      end
      if text ~= '' then
        table.insert(lines[#lines], { text, states[piece.state] })
      end
    end
  end
  return lines
end

--- Lines below a line are cut at the window's edge; break them where it wraps text.
local function broken(lines, width)
  local result = {}
  for _, chunks in ipairs(lines) do
    local row, used = {}, 0
    for _, chunk in ipairs(chunks) do
      local text = chunk[1]
      while used + vim.fn.strdisplaywidth(text) > width do
        local fits = vim.fn.strcharlen(text)
        repeat
          fits = fits - 1
        until fits <= 0 or used + vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, fits)) <= width
        fits = math.max(fits, used == 0 and 1 or 0)
        table.insert(row, { vim.fn.strcharpart(text, 0, fits), chunk[2] })
        table.insert(result, row)
        text, row, used = vim.fn.strcharpart(text, fits), {}, 0
      end
      table.insert(row, { text, chunk[2] })
      used = used + vim.fn.strdisplaywidth(text)
    end
    table.insert(result, row)
  end
  return result
end

--- The text width of the narrowest window that wraps this buffer; nil where none does.
local function narrowest(buf)
  local width
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if vim.wo[win].wrap then
      local info = vim.fn.getwininfo(win)[1]
      width = math.min(width or math.huge, info.width - info.textoff)
    end
  end
  return width and math.max(width, 8)
end

-- --- windows -------------------------------------------------------------------------------------

---@type table<integer, { buf: integer, level: integer, cursor: string }>
local concealing = {}

--- Have the windows of a buffer hide concealed text while a draft stands in its place.
local function conceal(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if not concealing[win] then
      concealing[win] = {
        buf = buf,
        level = vim.wo[win].conceallevel,
        cursor = vim.wo[win].concealcursor,
      }
      vim.wo[win][0].conceallevel = math.max(vim.wo[win].conceallevel, 2)
      vim.wo[win][0].concealcursor = 'nvic'
    end
  end
end

--- Give the windows of a buffer back what they had.
local function reveal(buf)
  for win, had in pairs(concealing) do
    if had.buf == buf then
      concealing[win] = nil
      if vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == buf then
        vim.wo[win][0].conceallevel = had.level
        vim.wo[win][0].concealcursor = had.cursor
      end
    end
  end
end

-- --- extmarks ------------------------------------------------------------------------------------

---@class frostline.Place a hole in the buffer
---@field first integer[] row and byte
---@field last integer[] row and byte

local function line_at(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
end

--- The hole itself, which follows the text as it is edited. What is typed at its start is ahead of it.
local function mark_hole(buf, place)
  local options = {}
  if not vim.deep_equal(place.first, place.last) then
    options.end_row, options.end_col = place.last[1], place.last[2]
    options.end_right_gravity = false
  end
  return vim.api.nvim_buf_set_extmark(buf, M.space, place.first[1], place.first[2], options)
end

local function put(buf, row, column, options)
  options.strict = false
  vim.api.nvim_buf_set_extmark(buf, M.space, row, column, options)
end

--- Show what will be replaced, line by line and without its indentation.
local function mark_old(buf, place)
  for row = place.first[1], place.last[1] do
    local line = line_at(buf, row)
    local start = row == place.first[1] and place.first[2] or #line:match('^%s*')
    local stop = row == place.last[1] and place.last[2] or #line
    if start < stop then
      put(buf, row, start, { end_col = stop, hl_group = 'FrostlineOld', priority = 200 })
    end
  end
end

--- Where the lines of a draft go: some at the end of text that is there, the others below.
---@return [string, string][][] inline by row, from the hole's first
---@return [string, string][][] below
local function layout(buf, place, lines, hidden)
  local rows = place.last[1] - place.first[1] + 1
  local prefix = line_at(buf, place.first[1]):sub(1, place.first[2])
  local suffix = line_at(buf, place.last[1]):sub(place.last[2] + 1)
  local inline, below = {}, {}
  for number, chunks in ipairs(lines) do
    if rows == 1 and number == 1 or (hidden and number <= rows) then
      inline[number] = chunks
    else
      table.insert(below, chunks)
    end
  end
  if rows > 1 and not hidden then
    -- The old lines stay where they are, and the draft stands below them as whole lines.
    table.insert(below[1], 1, { (visible(prefix, 0, vim.bo[buf].tabstop)), 'FrostlineFrozen' })
  end
  if #below > 0 and vim.trim(suffix) ~= '' then
    table.insert(below[#below], { (visible(suffix, 0, vim.bo[buf].tabstop)), 'FrostlineFrozen' })
  end
  return inline, below
end

local function draw_hole(buf, drawn, index, place, config)
  local pieces = drawn.holes[index].pieces
  local hidden = config.old == 'hidden'
  local empty = vim.deep_equal(place.first, place.last)
  drawn.marks[index] = mark_hole(buf, place)
  mark_old(buf, place)
  local last = place.last
  if #pieces > 0 then
    if hidden and not empty then
      conceal(buf)
      put(buf, place.first[1], place.first[2], { end_row = last[1], end_col = last[2], conceal = '' })
    end
    local start = vim.fn.strdisplaywidth(line_at(buf, place.first[1]):sub(1, place.first[2]))
    local lines = lines_of(pieces, start, vim.bo[buf].tabstop, config.shade)
    local inline, below = layout(buf, place, lines, hidden)
    for number, chunks in pairs(inline) do
      local row = place.first[1] + number - 1
      local column = number == 1 and place.first[2] or 0
      if row == last[1] then
        column = last[2]
        if not empty and not hidden then
          table.insert(chunks, 1, { ' → ', 'FrostlineLabel' })
        end
      end
      put(buf, row, column, { virt_text = chunks, virt_text_pos = 'inline', right_gravity = empty })
    end
    local width = narrowest(buf)
    below = width and broken(below, width) or below
    -- Lines once given stay until the end, so that the text below does not jump up and down.
    local rows = last[1] - place.first[1]
    local least = (rows > 0 and not hidden) and rows + 1 or 0
    drawn.heights[index] = math.max(drawn.heights[index] or least, #below)
    while #below < drawn.heights[index] do
      table.insert(below, { { '', 'FrostlineOpen' } })
    end
    put(buf, last[1], 0, { virt_lines = below, virt_lines_overflow = 'scroll' })
  end
end

--- Draw a draft in place of what was drawn before.
---@param buf integer
---@param drawn frostline.Drawn
---@param places frostline.Place[]
---@param full boolean false for the word at the line's end alone
function M.draw(buf, drawn, places, full)
  M.ready()
  local config = require('frostline.config').get()
  M.clear(buf, full and config.old == 'hidden')
  for index, place in ipairs(places) do
    if full then
      draw_hole(buf, drawn, index, place, config)
    else
      drawn.marks[index] = mark_hole(buf, place)
    end
    if config.label or not full then
      local label = { { ' ' .. drawn.label, 'FrostlineLabel' } }
      put(buf, place.last[1], 0, { virt_text = label, virt_text_pos = 'eol', priority = 100 })
    end
    if config.signs then
      local sign = drawn.label:find('drafting') and '░' or '█'
      put(buf, place.first[1], 0, { sign_text = sign, sign_hl_group = 'FrostlineLabel' })
    end
  end
end

--- Where the holes of a draft are now, after whatever was typed since it was drawn.
---@param buf integer
---@param drawn frostline.Drawn
---@return frostline.Place[]
function M.places(buf, drawn)
  local places = {}
  for index, mark in ipairs(drawn.marks) do
    local found = vim.api.nvim_buf_get_extmark_by_id(buf, M.space, mark, { details = true })
    if found[1] then
      local first = { found[1], found[2] }
      local last = { found[3].end_row or first[1], found[3].end_col or first[2] }
      places[index] = { first = first, last = last }
    end
  end
  return places
end

--- Take everything away that is drawn.
---@param buf integer
---@param still_hidden? boolean a draft takes its place at once
function M.clear(buf, still_hidden)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, M.space, 0, -1)
  end
  if not still_hidden then
    reveal(buf)
  end
end

return M
