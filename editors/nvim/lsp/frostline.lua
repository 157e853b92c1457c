-- What vim.lsp.enable('frostline') starts. vim.lsp.config('frostline', {...}) changes it: the
-- server's settings are `init_options`, such as { model = '/path/to/model' }.

local function heard(name)
  return function(_, params, ctx)
    require('frostline.session')[name](params, ctx)
  end
end

---@type vim.lsp.Config
return {
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
  -- Asked before anything is sent: a buffer that is off is never opened in the server.
  root_dir = function(buf, start)
    if require('frostline.config').enabled(buf) then
      start(vim.fs.root(buf, { '.git' }))
    end
  end,
  capabilities = { experimental = { frostline = { version = require('frostline.protocol').VERSION } } },
  -- Not left to LspDetach: Neovim 0.11 skips that for the others when one of the buffers is gone.
  on_exit = vim.schedule_wrap(function()
    require('frostline.session').check()
  end),
  handlers = {
    ['frostline/provisional'] = heard('provisional'),
    ['frostline/state'] = heard('state'),
    ['frostline/status'] = function(_, params, ctx)
      require('frostline.status').told(params, ctx)
    end,
    ['workspace/applyEdit'] = function(_, params, ctx)
      return require('frostline.edit').asked(params, ctx)
    end,
  },
}
