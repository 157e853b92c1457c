-- Frostline in Neovim 0.11 and its own LSP client. Paste this into init.lua, or load it:
-- dofile('/path/to/minimal.lua'). It maps only what stands in `maps` below; every key is yours
-- to change, and with `maps = {}` there is none.

local maps = {
  actions = '<Leader>ia', -- normal, visual: choose rewrite, fill body, repair
  rewrite = '<Leader>ir', -- visual: rewrite the selection
  fill = '<Leader>ii', -- normal: fill the gap at the cursor
  body = '<Leader>ib', -- normal: fill the function's body, or all unfinished bodies of its class
  cancel = '<Leader>ic', -- normal: stop denoising
  ghost = '<M-i>', -- insert: ask for ghost text at the cursor
  accept = '<M-y>', -- insert: put the ghost text into the file
}

local ghost_space = vim.api.nvim_create_namespace('frostline.ghost')
local ghost = nil -- what is shown: { buf, row, start, stop, lines }
local asking = nil -- the request under way: { client, id }
local asked_at = nil -- the text and the place that both belong to

-- Neovim 0.11 answers "applied" also where it made no edit, because it was for an older text.
local function apply_edit(err, params, ctx)
  for _, change in ipairs(params.edit.documentChanges or {}) do
    local buf = vim.uri_to_bufnr(change.textDocument.uri)
    if change.textDocument.version ~= vim.lsp.util.buf_versions[buf] then
      return { applied = false, failureReason = 'the text changed' }
    end
  end
  return vim.lsp.handlers['workspace/applyEdit'](err, params, ctx)
end

-- Neovim 0.11 opens a buffer as version 0 and compares versions only from 1 on, so an edit for what
-- was opened would land in whatever is there now. A change of nothing gives the text a number.
local function number_it(client, buf)
  if vim.lsp.util.buf_versions[buf] == 0 then
    local version = vim.api.nvim_buf_get_changedtick(buf)
    local document = { uri = vim.uri_from_bufnr(buf), version = version }
    vim.lsp.util.buf_versions[buf] = version
    client:notify('textDocument/didChange', { textDocument = document, contentChanges = {} })
  end
end

vim.lsp.config('frostline', {
  cmd = { 'frostline', 'lsp' },
  filetypes = {
    'python',
    'javascript',
    'javascriptreact',
    'typescript',
    'typescriptreact',
    'go',
    'rust',
    'java',
    'c',
    'cpp',
  },
  root_markers = { '.git' },
  init_options = {}, -- settings by name, such as { model = '/path/to/model' }
  handlers = { ['workspace/applyEdit'] = apply_edit },
})

local function client_of(buf)
  return vim.lsp.get_clients({ bufnr = buf, name = 'frostline' })[1]
end

local function position(client, buf, row, column)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  column = math.min(column, #line)
  return { line = row, character = vim.str_utfindex(line, client.offset_encoding, column) }
end

-- Run a command on a range of 0-based rows and byte columns. The answer to it is one edit by
-- workspace/applyEdit, or a message that says why there is none.
local function run(command, first, last)
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of(buf)
  if not client then
    return vim.notify('Frostline does not run in this buffer')
  end
  local range = {
    start = position(client, buf, unpack(first)),
    ['end'] = position(client, buf, unpack(last)),
  }
  local asked = { uri = vim.uri_from_bufnr(buf), range = range }
  local wanted = { title = 'Frostline', command = command, arguments = { asked } }
  client:exec_cmd(wanted, { bufnr = buf })
end

local function rewrite()
  local mode = vim.fn.mode()
  local how = { type = mode, eol = true }
  local parts = vim.fn.getregionpos(vim.fn.getpos('v'), vim.fn.getpos('.'), how)
  local first, last = parts[1][1], parts[#parts][2]
  local row, column = last[2] - 1, last[3]
  local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]
  if mode == 'V' then
    first[3], column = 1, #line
  elseif column > 0 and column <= #line then
    column = column + vim.str_utf_end(line, column) -- a selection includes its last character
  end
  vim.api.nvim_feedkeys(vim.keycode('<Esc>'), 'nx', false)
  run('frostline.rewrite', { first[2] - 1, math.max(first[3] - 1, 0) }, { row, column })
end

-- In normal mode the cursor cannot stand behind a line's last character: there, behind it is meant.
local function here()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  if #line > 0 and column + 1 + vim.str_utf_end(line, column + 1) == #line then
    column = #line
  end
  return { row - 1, column }
end

local function fill()
  run('frostline.fill', here(), here())
end

local function body()
  run('frostline.body', here(), here())
end

local function cancel()
  local client = client_of(0)
  for token in pairs(client and client.progress.pending or {}) do
    client:notify('window/workDoneProgress/cancel', { token = token })
  end
end

local function now()
  return {
    vim.api.nvim_get_mode().mode:sub(1, 1),
    vim.api.nvim_get_current_buf(),
    vim.api.nvim_buf_get_changedtick(0),
    vim.api.nvim_win_get_cursor(0),
  }
end

local function ghost_clear()
  if asking then
    asking.client:cancel_request(asking.id)
    asking = nil
  end
  if ghost and vim.api.nvim_buf_is_valid(ghost.buf) then
    vim.api.nvim_buf_clear_namespace(ghost.buf, ghost_space, 0, -1)
  end
  ghost = nil
end

local function ghost_check()
  if (ghost or asking) and not vim.deep_equal(now(), asked_at) then
    ghost_clear()
  end
end

local function ghost_show(item, client, buf)
  local first, last = item.range.start, item.range['end']
  local line = vim.api.nvim_buf_get_lines(buf, first.line, first.line + 1, false)[1]
  local byte = function(place)
    return vim.str_byteindex(line, client.offset_encoding, place.character, false)
  end
  local lines = vim.split(item.insertText, '\r?\n')
  ghost = {
    buf = buf,
    row = first.line,
    start = byte(first),
    stop = byte(last),
    lines = lines,
  }
  local below = vim.tbl_map(function(text)
    return { { text, 'NonText' } }
  end, vim.list_slice(lines, 2))
  vim.api.nvim_buf_set_extmark(buf, ghost_space, ghost.row, ghost.start, {
    virt_text = { { lines[1], 'NonText' } },
    virt_text_pos = 'inline',
    virt_lines = below,
  })
end

local function ghost_ask()
  ghost_clear()
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of(buf)
  if not client then
    return
  end
  local cursor = vim.api.nvim_win_get_cursor(0)
  asked_at = now()
  local asked = {
    textDocument = { uri = vim.uri_from_bufnr(buf), version = vim.lsp.util.buf_versions[buf] },
    position = position(client, buf, cursor[1] - 1, cursor[2]),
    context = { triggerKind = 1 },
  }
  local _, id = client:request('textDocument/inlineCompletion', asked, function(err, result)
    asking = nil
    local item = not err and result and result.items[1]
    if item and vim.deep_equal(now(), asked_at) then
      ghost_show(item, client, buf)
    end
  end, buf)
  asking = id and { client = client, id = id }
end

local function ghost_accept()
  ghost_check()
  local shown = ghost
  ghost_clear()
  if not shown then
    return
  end
  -- Without this, what was typed in this insert and the draft would be one undo step.
  vim.bo[shown.buf].undolevels = vim.bo[shown.buf].undolevels
  vim.api.nvim_buf_set_text(shown.buf, shown.row, shown.start, shown.row, shown.stop, shown.lines)
  local last = shown.lines[#shown.lines]
  local column = #shown.lines == 1 and shown.start + #last or #last
  vim.api.nvim_win_set_cursor(0, { shown.row + #shown.lines, column })
end

-- Neovim 0.11 inserts a completion only up to its first blank; this puts in the rest of a draft.
local function completed(buf)
  local done = vim.tbl_get(vim.v.completed_item, 'user_data', 'nvim', 'lsp') or {}
  local client = client_of(buf)
  if vim.v.event.reason ~= 'accept' or not client or done.client_id ~= client.id then
    return
  end
  local edit = done.completion_item.textEdit
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local start = column - #vim.v.completed_item.word
  local swallowed = edit.range['end'].character - edit.range.start.character -- blanks, so bytes
  local lines = vim.split(edit.newText, '\r?\n')
  vim.api.nvim_buf_set_text(buf, row - 1, start, row - 1, column + swallowed, lines)
  local last = lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines - 1, #lines == 1 and start + #last or #last })
end

local group = vim.api.nvim_create_augroup('frostline', {})

vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if not client or client.name ~= 'frostline' then
      return
    end
    local buf = event.buf
    number_it(client, buf)
    local function map(modes, name, action)
      if maps[name] then
        vim.keymap.set(modes, maps[name], action, { buffer = buf, desc = 'Frostline: ' .. name })
      end
    end
    map({ 'n', 'x' }, 'actions', vim.lsp.buf.code_action)
    map('x', 'rewrite', rewrite)
    map('n', 'fill', fill)
    map('n', 'body', body)
    map('n', 'cancel', cancel)
    map('i', 'ghost', ghost_ask)
    map('i', 'accept', ghost_accept)
    -- <C-x><C-o> asks for the popup, <C-y> takes what it shows; a single item is shown, not taken.
    vim.lsp.completion.enable(true, client.id, buf)
    vim.bo[buf].completeopt = 'menuone,noinsert'
    local function on(events, callback)
      vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
    end
    on({ 'CursorMovedI', 'TextChangedI', 'BufLeave' }, ghost_check)
    on('InsertLeave', ghost_clear)
    on('CompleteDone', function()
      completed(buf)
    end)
  end,
})

vim.lsp.enable('frostline')
