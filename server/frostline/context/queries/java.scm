; What Frostline asks of a Java file. The names are explained in grammar.py.

(method_declaration name: (_) @name body: (block) @body) @function
(constructor_declaration name: (_) @name body: (constructor_body) @body) @function
(compact_constructor_declaration name: (_) @name body: (block) @body) @function
(lambda_expression body: (_) @body) @closure

(class_declaration name: (_) @name body: (class_body) @body) @class
(interface_declaration name: (_) @name body: (interface_body) @body) @class
(enum_declaration name: (_) @name body: (enum_body) @body) @class
(record_declaration name: (_) @name body: (class_body) @body) @class

(import_declaration) @import

(string_literal) @string

((throw_statement (object_creation_expression type: (_) @_error)) @stub
  (#match? @_error "(UnsupportedOperation|NotImplemented)(Exception|Error)$"))
((throw_statement
   (object_creation_expression arguments: (argument_list . (string_literal) @_why))) @stub
  (#match? @_why "(?i)not (yet )?implemented|unimplemented|todo"))

(constructor_declaration) @complete
(compact_constructor_declaration) @complete
