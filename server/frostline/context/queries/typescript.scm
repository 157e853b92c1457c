; inherits: javascript
; What TypeScript adds.

(abstract_class_declaration name: (_) @name body: (class_body) @body) @class
(internal_module name: (_) @name body: (statement_block) @body) @scope
(module name: (_) @name body: (statement_block) @body) @scope
(interface_declaration name: (_) @name) @data
(type_alias_declaration name: (_) @name) @data
(enum_declaration name: (_) @name) @data

(public_field_definition
  name: (property_identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (statement_block) @body)
  ] @function) @header
