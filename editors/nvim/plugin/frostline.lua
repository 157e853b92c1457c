-- Registers; everything else is loaded when it is used. No key is mapped here.

if vim.g.loaded_frostline then
  return
end
vim.g.loaded_frostline = true

vim.api.nvim_create_user_command('Frostline', function(call)
  require('frostline.command').run(call)
end, {
  nargs = '+',
  range = true,
  bang = true,
  desc = 'Frostline: rewrite, fill, accept, …',
  complete = function(...)
    return require('frostline.command').complete(...)
  end,
})

local names = {
  'fill',
  'body',
  'repair',
  'accept',
  'hole',
  'line',
  'word',
  'stable',
  'reject',
  'pin',
  'refine',
  'retry',
  'back',
  'ghost',
  'show',
  'hide',
}
for _, name in ipairs(names) do
  vim.keymap.set({ 'n', 'i' }, ('<Plug>(frostline-%s)'):format(name), function()
    require('frostline.command').call(name)
  end, { desc = 'Frostline: ' .. name })
end
-- An operator, so that it takes any motion or selection, and `.` repeats it.
vim.keymap.set({ 'n', 'x' }, '<Plug>(frostline-rewrite)', function()
  return require('frostline.ask').operator()
end, { expr = true, desc = 'Frostline: rewrite' })

local group = vim.api.nvim_create_augroup('frostline', {})
local function on(event, callback)
  vim.api.nvim_create_autocmd(event, { group = group, callback = callback })
end

on('LspAttach', function(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if client and client.name == 'frostline' then
    require('frostline.client').attached(client, event.buf)
  end
end)
on('LspDetach', function(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if client and client.name == 'frostline' then
    require('frostline.client').detached(event.buf)
  end
end)
