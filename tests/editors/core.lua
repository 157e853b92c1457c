-- What Neovim 0.12 has as vim.lsp.inline_completion, as far as a plugin can tell: when it asks, what it
-- shows, and what it hands to on_accept. `shape` is how it writes a range: first positions, later numbers.

local M = { shape = 'numbers', asked = 0 }
local space = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
local current, timer
local active = {}

local function abort(buf)
  if timer then
    timer:stop()
  end
  vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  current = nil
end

local function show(buf, item)
  vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  local from, to = item.range.start, item.range['end']
  current = { insert_text = item.insertText }
  if M.shape == 'numbers' then
    current.range =
      { start_row = from.line, start_col = from.character, end_row = to.line, end_col = to.character }
  else
    current.range = {
      start = { row = from.line, col = from.character },
      end_ = { row = to.line, col = to.character },
    }
  end
  local chunk = { item.insertText, 'ComplHint' }
  vim.api.nvim_buf_set_extmark(buf, space, to.line, to.character, { virt_text = { chunk } })
end

local function ask(buf)
  local client = vim.lsp.get_clients({ bufnr = buf, name = 'frostline' })[1]
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = 2 }
  client:request('textDocument/inlineCompletion', params, function(_, result)
    M.asked = M.asked + 1
    if result and vim.startswith(vim.api.nvim_get_mode().mode, 'i') and result.items[1] then
      show(buf, result.items[1])
    end
  end, buf)
end

function M.enable(on, filter)
  local buf = filter.bufnr
  if active[buf] then
    vim.api.nvim_del_augroup_by_id(active[buf])
    active[buf] = nil
    abort(buf)
  end
  if not on then
    return
  end
  active[buf] = vim.api.nvim_create_augroup('core' .. buf, {})
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'CursorMovedI', 'TextChangedP' }, {
    group = active[buf],
    buffer = buf,
    callback = function()
      timer = timer or vim.uv.new_timer()
      timer:start(20, 0, vim.schedule_wrap(function()
        ask(buf)
      end))
    end,
  })
  vim.api.nvim_create_autocmd('InsertLeave', {
    group = active[buf],
    buffer = buf,
    callback = function()
      abort(buf)
    end,
  })
end

function M.get(options)
  local buf = vim.api.nvim_get_current_buf()
  if not active[buf] or not current then
    return false
  end
  vim.schedule(function()
    local item = current
    abort(buf)
    if item then
      options.on_accept(item)
    end
  end)
  return true
end

vim.lsp.inline_completion = M
