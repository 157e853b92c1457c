--- The server as Neovim's LSP client has it: who it is, what it is asked, where a position is.

local M = {}

M.NAME = 'frostline'

---@param buf integer
---@return vim.lsp.Client?
function M.of(buf)
  return vim.lsp.get_clients({ bufnr = buf, name = M.NAME })[1]
end

--- The client of a buffer that Frostline is on in, or the sentence that says why there is none.
---@param buf integer
---@return vim.lsp.Client?
---@return string why there is none, or ''
function M.serving(buf)
  local allowed, why = require('frostline.config').enabled(buf)
  if not allowed then
    return nil, why
  end
  local client = M.of(buf)
  if not client or client:is_stopped() then
    return nil, 'Frostline does not run in this buffer; see :checkhealth frostline'
  end
  return client, ''
end

--- The version of a buffer that the server is told, which every edit and every draft is compared to.
---@param buf integer
---@return integer
function M.version(buf)
  return vim.lsp.util.buf_versions[buf]
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

---@param client vim.lsp.Client
---@param buf integer
function M.attached(client, buf)
  number_it(client, buf)
  require('frostline.draw').ready()
  require('frostline.ghost').attached(client, buf)
end

---@param buf integer
function M.detached(buf)
  require('frostline.ghost').detached(buf)
  require('frostline.session').lost(buf)
end

---@param buf integer
---@param method string
---@param params table
---@param answered fun(result: table)
function M.request(buf, method, params, answered)
  local client, why = M.serving(buf)
  if not client then
    return require('frostline.status').say(why, 'WarningMsg')
  end
  client:request(method, params, function(err, result)
    if err then
      return require('frostline.status').say(err.message, 'WarningMsg')
    end
    answered(result or {})
  end, buf)
end

--- The protocol's position of a row and a byte, both from 0.
---@param client vim.lsp.Client
---@param buf integer
---@param row integer
---@param column integer
---@return lsp.Position
function M.position(client, buf, row, column)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  column = math.min(column, #line)
  return { line = row, character = vim.str_utfindex(line, client.offset_encoding, column) }
end

--- The row and the byte of a position; what lies behind the last line is its end.
---@param client vim.lsp.Client
---@param buf integer
---@param position lsp.Position
---@return integer row
---@return integer column
function M.place(client, buf, position)
  local line = vim.api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1]
  if not line then
    local last = vim.api.nvim_buf_line_count(buf) - 1
    return last, #vim.api.nvim_buf_get_lines(buf, last, last + 1, true)[1]
  end
  local column = vim.str_byteindex(line, client.offset_encoding, position.character, false)
  return position.line, column
end

--- A carriage return inside a line ends it for the server and not for Neovim: no position below it
--- would mean the same to both.
---@param buf integer
---@return boolean
function M.countable(buf)
  for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, true)) do
    if line:find('\r.') or (line:find('\r$') and vim.bo[buf].fileformat ~= 'unix') then
      return false
    end
  end
  return true
end

return M
