--- `:checkhealth frostline`.

local M = {}

local health = vim.health

local function neovim()
  health.start('Neovim')
  if vim.fn.has('nvim-0.11') == 0 then
    return health.error('Frostline needs Neovim 0.11', 'Install a newer Neovim.')
  end
  health.ok('version ' .. tostring(vim.version()))
  if vim.lsp.inline_completion then
    health.ok('ghost text while you type: by vim.lsp.inline_completion')
  else
    health.ok('ghost text: drawn by the plugin (vim.lsp.inline_completion comes with 0.12)')
  end
end

local function settings()
  health.start('Settings')
  local wrong = require('frostline.config').complaints(vim.g.frostline or {})
  for _, sentence in ipairs(wrong) do
    health.warn(sentence, ':help frostline-settings')
  end
  if #wrong == 0 then
    health.ok('vim.g.frostline')
  end
end

--- The program that is started, where the configuration names one.
---@return string?
local function program()
  local command = (vim.lsp.config.frostline or {}).cmd
  return type(command) == 'table' and command[1] or nil
end

local function server()
  health.start('Server')
  local command = program() or 'frostline'
  if vim.fn.executable(command) == 0 then
    local advice = "pip install '.[local]' in Frostline's sources, and start Neovim where that is in PATH"
    return health.error(('%s is not in PATH'):format(command), advice)
  end
  health.ok(vim.fn.exepath(command))
  if not vim.lsp.is_enabled('frostline') then
    health.warn('it is not switched on', "Put vim.lsp.enable('frostline') into init.lua.")
  end
  local clients = vim.lsp.get_clients({ name = 'frostline' })
  if #clients == 0 then
    health.info('not running; it starts with the first file of its kind')
  end
  for _, client in ipairs(clients) do
    local offered = vim.tbl_get(client.server_capabilities, 'experimental', 'frostline', 'version')
    local buffers = vim.tbl_count(client.attached_buffers)
    if offered == require('frostline.protocol').VERSION then
      health.ok(('running for %d buffers, with live drafts'):format(buffers))
    else
      local advice = 'Take plugin and server from the same version.'
      health.error(('it offers live drafts of version %s'):format(offered), advice)
    end
  end
end

---@param command string
local function model(command)
  health.start('Model')
  local done = vim.system({ command, 'doctor', '--json' }, { text = true }):wait(60000)
  local read, report = pcall(vim.json.decode, done.stdout or '')
  if not read then
    return health.error('frostline doctor gives no report', vim.trim(done.stderr or ''))
  end
  for _, check in ipairs(report.checks) do
    local words = ('%s: %s'):format(check.name, check.found)
    if check.ok then
      health.ok(words)
    else
      health.error(words, check.advice)
    end
  end
end

function M.check()
  neovim()
  settings()
  server()
  local command = program()
  if command and vim.fn.executable(command) == 1 then
    model(command)
  end
end

return M
