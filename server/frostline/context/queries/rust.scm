; What Frostline asks of a Rust file. The names are explained in grammar.py.

(function_item name: (_) @name body: (block) @body) @function
(closure_expression body: (_) @body) @closure

(impl_item body: (declaration_list) @body) @class
(trait_item name: (_) @name body: (declaration_list) @body) @class
(mod_item name: (_) @name body: (declaration_list) @body) @scope
(struct_item name: (_) @name) @data
(enum_item name: (_) @name) @data
(type_item name: (_) @name) @data

(use_declaration) @import

(string_literal) @string
(raw_string_literal) @string

((expression_statement (macro_invocation macro: (identifier) @_macro)) @stub
  (#any-of? @_macro "todo" "unimplemented"))
((macro_invocation macro: (identifier) @_macro) @stub
  (#any-of? @_macro "todo" "unimplemented"))
((expression_statement
   (macro_invocation
     macro: (identifier) @_macro
     (token_tree . (string_literal) @_why))) @stub
  (#eq? @_macro "panic")
  (#match? @_why "(?i)not (yet )?implemented|unimplemented|todo"))
