--- What a configuration calls. Everything else is `:Frostline` and `<Plug>` mappings.

local M = {}

--- Text for a status line: `%{v:lua.require'frostline'.status()}`.
---@return string
function M.status()
  return require('frostline.status').line()
end

--- Whether there is something to accept in this buffer: ghost text, or a draft.
---@return boolean
function M.offers()
  local buf = vim.api.nvim_get_current_buf()
  return require('frostline.ghost').shown() or require('frostline.session').of(buf) ~= nil
end

--- Do what the key did before this mapping.
---@param key string
---@param before table what maparg() said of it
local function fall_through(key, before)
  if before.lhs == nil then
    return key
  end
  local keys = before.rhs
  if before.callback then
    if before.expr ~= 1 then
      -- Text may not change while an expression is evaluated.
      vim.schedule(before.callback)
      return ''
    end
    keys = before.callback()
    return keys and before.replace_keycodes == 1 and vim.keycode(keys) or keys or ''
  end
  if before.expr == 1 then
    keys = vim.api.nvim_eval(before.rhs)
    return before.replace_keycodes == 1 and vim.keycode(keys) or keys
  end
  return vim.keycode(keys)
end

--- Map a key to a command while there is something to accept; else it does what it did before.
---
--- ```lua
--- require('frostline').map('i', '<Tab>', 'accept')
--- ```
---@param mode string
---@param key string
---@param name string a `:Frostline` command
function M.map(mode, key, name)
  local before = vim.fn.maparg(key, mode, false, true)
  local plain = before.lhs == nil
  vim.keymap.set(mode, key, function()
    if not M.offers() then
      return fall_through(plain and vim.keycode(key) or key, before)
    end
    vim.schedule(function()
      require('frostline.command').call(name)
    end)
    return ''
  end, {
    expr = true,
    replace_keycodes = false,
    remap = not plain and before.noremap == 0,
    buffer = before.buffer == 1,
    desc = ('Frostline: %s, or what it was'):format(name),
  })
end

return M
