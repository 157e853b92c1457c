--- `:Frostline NAME …`, with completion. Each name is one line in `commands`.

local M = {}

local NUMBERS = { strength = true, length = true, steps = true, budget = true, seed = true }

--- Options of the form name=number, and the other words as one instruction.
---@param words string[]
---@return table options
---@return string? wrong
local function options_of(words)
  local options, rest = {}, {}
  for _, word in ipairs(words) do
    local name, value = word:match('^(%l+)=(.*)$')
    if name and NUMBERS[name] then
      if not tonumber(value) then
        return {}, ('%s must be a number, not %q'):format(name, value)
      end
      options[name == 'budget' and 'budgetMs' or name] = tonumber(value)
    else
      table.insert(rest, word)
    end
  end
  options.instruction = #rest > 0 and table.concat(rest, ' ') or nil
  return options
end

local function buffer()
  return vim.api.nvim_get_current_buf()
end

local function session()
  return require('frostline.session')
end

local function say(text)
  require('frostline.status').say('Frostline: ' .. text, 'WarningMsg')
end

--- Ghost text where it is shown, else the draft.
local function accept(scope)
  return function(call)
    if require('frostline.ghost').accept(scope) then
      return
    end
    local hole = (scope == 'hole' or scope == 'line' or scope == 'word') and session().hole_at_cursor(buffer())
    session().accept(buffer(), scope, { anyway = call.bang or nil, hole = hole or nil })
  end
end

local function at_cursor(intent)
  return function(_, options)
    require('frostline.ask').at_cursor(intent, options)
  end
end

local function reject()
  if not require('frostline.ghost').dismiss() then
    session().reject(buffer())
  end
end

local function refine(_, options)
  if next(options) then
    return session().refine(buffer(), options)
  end
  local buf = buffer()
  vim.ui.input({ prompt = 'Refine the draft: ' }, function(instruction)
    if instruction and instruction ~= '' then
      session().refine(buf, { instruction = instruction })
    end
  end)
end

local function pin(call)
  local buf, text = buffer(), table.concat(call.words, ' ')
  if text ~= '' then
    return session().pin(buf, text)
  end
  local lines = vim.split(table.concat(session().texts(buf), '\n'), '\n', { trimempty = true })
  if #lines == 0 then
    return say('there is no draft in this buffer')
  end
  vim.ui.select(lines, { prompt = 'Keep which line?' }, function(line)
    if line then
      session().pin(buf, line)
    end
  end)
end

local function switch(on)
  return function()
    local buf = buffer()
    vim.b[buf].frostline = on
    local client = require('frostline.client').of(buf)
    if not on and client then
      vim.lsp.buf_detach_client(buf, client.id)
    elseif on and not client then
      -- Where a config is enabled, it is started for this buffer as for a new one.
      vim.api.nvim_exec_autocmds('FileType', { buffer = buf, group = 'nvim.lsp.enable', modeline = false })
    end
  end
end

---@class frostline.Call
---@field words string[] what stands behind the name
---@field bang boolean
---@field range integer
---@field line1 integer
---@field line2 integer

---@type table<string, fun(call: frostline.Call, options: table)>
local commands = {
  rewrite = function(call, options)
    require('frostline.ask').rewrite(call.line1, call.line2, options)
  end,
  fill = at_cursor('infill'),
  body = at_cursor('skeleton'),
  repair = at_cursor('repair'),
  accept = accept('all'),
  hole = accept('hole'),
  line = accept('line'),
  word = accept('word'),
  stable = accept('stable'),
  reject = reject,
  pin = pin,
  refine = refine,
  retry = function(_, options)
    session().refine(buffer(), options)
  end,
  back = function()
    session().back(buffer())
  end,
  ghost = function()
    require('frostline.ghost').ask()
  end,
  show = function()
    session().show(buffer(), true)
  end,
  hide = function()
    if not require('frostline.ghost').dismiss() then
      session().show(buffer(), false)
    end
  end,
  on = switch(true),
  off = switch(false),
  status = function()
    require('frostline.status').show()
  end,
  log = function()
    vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
  end,
}

--- Run one of the commands.
---@param name string
---@param call? table
function M.call(name, call)
  local here = vim.fn.line('.')
  local full = vim.tbl_extend('keep', call or {}, { words = {}, range = 0, line1 = here, line2 = here })
  local run = commands[name]
  if not run then
    return say(('there is no command %q; :help :Frostline lists them'):format(name))
  end
  -- What is pinned is text; everywhere else name=number is an option.
  local options, wrong = options_of(name == 'pin' and {} or full.words)
  if wrong then
    return say(wrong)
  end
  run(full, options)
end

--- Run `:Frostline …`.
---@param call vim.api.keyset.create_user_command.command_args
function M.run(call)
  local words = call.fargs
  local name = table.remove(words, 1)
  M.call(name, { words = words, bang = call.bang, range = call.range, line1 = call.line1, line2 = call.line2 })
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local name, rest = line:match('Frostline!?%s+(%l*)(.*)$')
  local found
  if rest == '' then
    found = vim.tbl_keys(commands)
  elseif name == 'pin' then
    found = {}
    for word in table.concat(session().texts(buffer()), ' '):gmatch('%S+') do
      table.insert(found, word)
    end
  elseif vim.list_contains({ 'rewrite', 'refine', 'retry' }, name) then
    found = { 'strength=' }
  elseif vim.list_contains({ 'fill', 'body', 'repair' }, name) then
    found = { 'length=', 'steps=', 'budget=' }
  end
  found = vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, found or {})
  table.sort(found)
  return found
end

return M
