; What Frostline asks of a JavaScript file. The names are explained in grammar.py.

(function_declaration name: (_) @name body: (statement_block) @body) @function
(generator_function_declaration name: (_) @name body: (statement_block) @body) @function
(method_definition name: (_) @name body: (statement_block) @body) @function
(function_expression body: (statement_block) @body) @closure
(generator_function body: (statement_block) @body) @closure
(arrow_function body: (_) @body) @closure

; A closure that is bound to a name is that name's function.
(lexical_declaration
  (variable_declarator
    name: (identifier) @name
    value: [
      (arrow_function body: (_) @body)
      (function_expression body: (statement_block) @body)
      (generator_function body: (statement_block) @body)
    ] @function)) @header
(variable_declaration
  (variable_declarator
    name: (identifier) @name
    value: [
      (arrow_function body: (_) @body)
      (function_expression body: (statement_block) @body)
    ] @function)) @header
(assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)]
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (statement_block) @body)
  ] @function) @header
(pair
  key: (property_identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (statement_block) @body)
  ] @function) @header

(class_declaration name: (_) @name body: (class_body) @body) @class
(class body: (class_body) @body) @class

(import_statement) @import
((lexical_declaration
   (variable_declarator value: (call_expression function: (identifier) @_require))) @import
  (#eq? @_require "require"))

(string) @string
(template_string) @string
(template_substitution) @substitution

((throw_statement (new_expression arguments: (arguments . (string) @_why))) @stub
  (#match? @_why "(?i)not (yet )?implemented|unimplemented|todo"))
((throw_statement (call_expression arguments: (arguments . (string) @_why))) @stub
  (#match? @_why "(?i)not (yet )?implemented|unimplemented|todo"))
((throw_statement (new_expression constructor: (identifier) @_error)) @stub
  (#match? @_error "NotImplemented|Unimplemented"))

((method_definition name: (property_identifier) @_name) @complete
  (#eq? @_name "constructor"))
(pair value: (_) @complete)
