; What Frostline asks of a Go file. The names are explained in grammar.py.

(function_declaration name: (_) @name body: (block) @body) @function
(method_declaration name: (_) @name body: (block) @body) @function
(func_literal body: (block) @body) @closure

(type_declaration (type_spec name: (_) @name)) @data

(import_declaration) @import

(interpreted_string_literal) @string
(raw_string_literal) @string

((expression_statement
   (call_expression
     function: (identifier) @_call
     arguments: (argument_list . (interpreted_string_literal) @_why))) @stub
  (#eq? @_call "panic")
  (#match? @_why "(?i)not (yet )?implemented|unimplemented|todo"))
