-- Completion and checks for manifests of ccm, with Neovim 0.11 or later and
-- yaml-language-server in PATH. Put it into ~/.config/nvim/after/plugin/.
vim.lsp.config("ccm", {
  cmd = { "yaml-language-server", "--stdio" },
  filetypes = { "yaml" },
  root_markers = { "schemas/v1/manifest.json", ".git" },
  settings = {
    yaml = {
      validate = true,
      completion = true,
      hover = true,
      schemas = {
        ["./schemas/v1/manifest.json"] = { "manifest.yaml", "manifests/**/*.yaml" },
      },
    },
  },
})
vim.lsp.enable("ccm")
