; inherits: c
; What C++ adds.

(function_definition
  declarator: (reference_declarator (function_declarator declarator: (_) @name))
  body: (compound_statement) @body) @function
(template_declaration
  (function_definition
    declarator: (function_declarator declarator: (_) @name)
    body: (compound_statement) @body) @function) @header
(lambda_expression body: (compound_statement) @body) @closure

(class_specifier name: (_) @name body: (field_declaration_list) @body) @class
(struct_specifier name: (_) @name body: (field_declaration_list) @body) @class
(template_declaration
  (class_specifier name: (_) @name body: (field_declaration_list) @body) @class) @header
(namespace_definition body: (declaration_list) @body) @scope
(linkage_specification body: (declaration_list) @body) @scope

(using_declaration) @import
(alias_declaration name: (_) @name) @data

(raw_string_literal) @string

((throw_statement
   (call_expression arguments: (argument_list . (string_literal) @_why))) @stub
  (#match? @_why "(?i)not (yet )?implemented|unimplemented|todo"))

; Constructors and destructors.
(function_definition !type) @complete
(function_definition (field_initializer_list)) @complete
