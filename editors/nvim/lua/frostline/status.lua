--- What is told in words: the worker's state, a draft's state, and why something was refused. Nothing
--- is said by colour alone, and nothing takes the focus.

local M = {}

---@type table<integer, frostline.StatusTold>
local workers = {}

local words = {
  off = 'off',
  starting = 'starting',
  loading = 'loading the model',
  ready = 'ready',
  busy = 'drafting',
  lost = 'the worker stopped',
}

-- What was said last, whole.
local last = ''

--- Say one sentence in the message line, cut to its width so that nobody has to press a key;
--- `:Frostline status` has all of it.
---@param text string
---@param group? string
function M.say(text, group)
  text = text:gsub('%s+', ' ')
  last = text
  local room = math.max(vim.o.columns - 14, 20)
  if vim.fn.strdisplaywidth(text) > room then
    text = vim.fn.strcharpart(text, 0, room - 1) .. '…'
  end
  vim.api.nvim_echo({ { text, group } }, true, {})
end

--- Tell a state of a draft, as far as the user wants to hear of it.
---@param state string
---@param text string
function M.announce(state, text)
  local wish = require('frostline.config').get().announce
  if wish == 'all' or (wish == 'ends' and state ~= 'drafting') then
    M.say('Frostline: ' .. text, state == 'refused' and 'WarningMsg' or nil)
  end
end

--- Take what the server says of its worker.
---@param params frostline.StatusTold
---@param ctx { client_id: integer }
function M.told(params, ctx)
  local before = workers[ctx.client_id]
  workers[ctx.client_id] = params
  if params.worker == 'lost' and (before or {}).worker ~= 'lost' then
    M.announce('refused', params.message ~= '' and params.message or words.lost)
  end
  M.changed()
end

--- Tell status lines that there is something new.
function M.changed()
  vim.api.nvim_exec_autocmds('User', { pattern = 'FrostlineStatus', modeline = false })
  vim.schedule(vim.cmd.redrawstatus)
end

--- A few words for a status line: '' where Frostline does not run.
---@param buf? integer
---@return string
function M.line(buf)
  buf = buf or vim.api.nvim_get_current_buf()
  local client = require('frostline.client').of(buf)
  if not client then
    return ''
  end
  local draft = require('frostline.session').words(buf)
  local worker = workers[client.id]
  if draft then
    return 'Frostline: ' .. draft
  end
  if not worker then
    return 'Frostline'
  end
  local progress = worker.progress and (' %d %%'):format(worker.progress * 100) or ''
  return 'Frostline: ' .. (words[worker.worker] or worker.worker) .. progress
end

--- Show everything that is known, for `:Frostline status`.
function M.show()
  local buf = vim.api.nvim_get_current_buf()
  require('frostline.client').request(buf, require('frostline.protocol').STATUS, {}, function(worker)
    local parts = { words[worker.worker] or worker.worker }
    for _, name in ipairs({ 'model', 'device', 'message' }) do
      table.insert(parts, (worker[name] or '') ~= '' and worker[name] or nil)
    end
    if worker.memory then
      table.insert(parts, ('%d MiB'):format(worker.memory / 2 ^ 20))
    end
    local lines = { M.line(buf), table.concat(parts, ', ') }
    vim.list_extend(lines, worker.cannot or {})
    table.insert(lines, last ~= '' and last or nil)
    vim.api.nvim_echo({ { table.concat(lines, '\n') } }, true, {})
  end)
end

return M
