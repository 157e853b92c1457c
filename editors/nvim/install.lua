-- Installs the plugin for Neovim without a plugin manager, and switches it on:
--   nvim -l editors/nvim/install.lua
-- Running it again takes the plugin as it is now; to be rid of it, delete the folder that it names.

local here = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))
local there = vim.fs.joinpath(vim.fn.stdpath('data'), 'site', 'pack', 'frostline', 'start', 'frostline')

local function copy(from, to)
  vim.fn.mkdir(to, 'p')
  for name, kind in vim.fs.dir(from) do
    local source, target = vim.fs.joinpath(from, name), vim.fs.joinpath(to, name)
    if kind == 'directory' then
      copy(source, target)
    else
      assert(vim.uv.fs_copyfile(source, target))
    end
  end
end

vim.fs.rm(there, { recursive = true, force = true })
for _, part in ipairs({ 'doc', 'lsp', 'lua', 'plugin' }) do
  copy(vim.fs.joinpath(here, part), vim.fs.joinpath(there, part))
end
vim.fn.writefile({ "vim.lsp.enable('frostline')" }, vim.fs.joinpath(there, 'plugin', 'enable.lua'))
vim.cmd.helptags(vim.fs.joinpath(there, 'doc'))
print('Frostline is in ' .. there .. '\n')
if vim.fn.executable('frostline') == 0 then
  print('The command `frostline` is not in PATH yet; Neovim must find it there.\n')
end
