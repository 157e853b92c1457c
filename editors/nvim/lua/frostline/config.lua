--- The plugin's settings. They come from `vim.g.frostline` and are read when they are needed, so a
--- change holds at once. What the server should do is not here: those are the server's settings.

local M = {}

---@class frostline.Config
---@field show 'draft'|'indicator' the draft itself, or only a word at the line's end
---@field old 'struck'|'hidden' the old text of a rewrite while its draft is shown
---@field shade string drawn for each cell of an open slot; '' draws the best guess
---@field signs boolean a sign beside a draft, where the sign column is always there
---@field label boolean a word at the line's end: drafting 3/8, ready, does not parse
---@field ghost 'manual'|'auto'|'off' when ghost text is asked for
---@field ghost_delay integer milliseconds without a key before ghost text is asked for
---@field triggers frostline.Triggers what 'auto' takes for a reason to ask
---@field popup 'beside'|'hide' ghost text while a completion menu is open
---@field announce 'all'|'ends'|'none' which states are told in the message line
---@field strength number share of a selection that a rewrite noises first, 0 to 1
---@field filetypes table<string, boolean> false: nothing is sent from such buffers
---@field paths string[] globs; files that match are never sent, not even to the server

---@class frostline.Triggers
---@field typed boolean
---@field deleted boolean
---@field pasted boolean
---@field completed boolean

---@type frostline.Config
M.defaults = {
  show = 'draft',
  old = 'struck',
  shade = '░',
  signs = false,
  label = true,
  ghost = 'manual',
  ghost_delay = 150,
  triggers = { typed = true, deleted = false, pasted = false, completed = false },
  popup = 'beside',
  announce = 'ends',
  strength = 0.6,
  filetypes = {},
  -- The server keeps many more from the model; these it does not even get to read.
  paths = { '**/.env', '**/.env.*', '**/*.pem', '**/*.key' },
}

local choices = {
  show = { 'draft', 'indicator' },
  old = { 'struck', 'hidden' },
  ghost = { 'manual', 'auto', 'off' },
  popup = { 'beside', 'hide' },
  announce = { 'all', 'ends', 'none' },
}

--- What is wrong with the user's settings, one sentence each.
---@param given table
---@return string[]
function M.complaints(given)
  local found = {}
  for name, value in vim.spairs(given) do
    local default = M.defaults[name]
    if default == nil then
      table.insert(found, ('vim.g.frostline has no setting %q'):format(name))
    elseif type(value) ~= type(default) then
      table.insert(found, ('vim.g.frostline.%s must be a %s'):format(name, type(default)))
    elseif choices[name] and not vim.list_contains(choices[name], value) then
      local allowed = table.concat(choices[name], ', ')
      table.insert(found, ('vim.g.frostline.%s must be one of: %s'):format(name, allowed))
    end
  end
  return found
end

local told = {}

---@return frostline.Config
function M.get()
  local given = vim.g.frostline or {}
  local good = {}
  for name, value in pairs(given) do
    local wrong = M.complaints({ [name] = value })[1]
    if not wrong then
      good[name] = value
    elseif not told[wrong] then
      told[wrong] = true
      vim.notify('Frostline: ' .. wrong, vim.log.levels.WARN)
    end
  end
  return vim.tbl_deep_extend('force', M.defaults, good)
end

--- Whether anything of a buffer may be sent or drawn. The one predicate: attaching, asking and
--- drawing all go by it.
---@param buf integer
---@return boolean allowed
---@return string why it is not, or ''
function M.enabled(buf)
  local config = M.get()
  if vim.b[buf].frostline == false then
    return false, 'Frostline is off in this buffer; turn it on by :Frostline on'
  end
  local filetype = vim.bo[buf].filetype
  if config.filetypes[filetype] == false then
    return false, ('Frostline is off for %s (vim.g.frostline.filetypes)'):format(filetype)
  end
  local path = vim.fs.normalize(vim.api.nvim_buf_get_name(buf))
  for _, glob in ipairs(config.paths) do
    if vim.glob.to_lpeg(glob):match(path) then
      return false, ('Frostline is off for files like %s (vim.g.frostline.paths)'):format(glob)
    end
  end
  return true, ''
end

return M
