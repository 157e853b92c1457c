; What Frostline asks of a C file. The names are explained in grammar.py.

(function_definition body: (compound_statement) @body) @function
(function_definition
  declarator: (function_declarator declarator: (_) @name)
  body: (compound_statement) @body) @function
(function_definition
  declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))
  body: (compound_statement) @body) @function

(struct_specifier name: (_) @name body: (field_declaration_list)) @data
(enum_specifier name: (_) @name body: (enumerator_list)) @data
(type_definition declarator: (type_identifier) @name) @data

(preproc_include) @include

(string_literal) @string
