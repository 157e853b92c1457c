; What Frostline asks of a Python file. The names are explained in grammar.py.

(function_definition name: (identifier) @name body: (block) @body) @function
(lambda body: (_) @body) @closure
(class_definition name: (identifier) @name body: (block) @body) @class
(decorated_definition
  definition: (function_definition name: (identifier) @name body: (block) @body) @function) @header
(decorated_definition
  definition: (class_definition name: (identifier) @name body: (block) @body) @class) @header

(import_statement) @import
(import_from_statement) @import

(string) @string
(interpolation) @substitution

(function_definition
  body: (block . (comment)* . (expression_statement . (string) .) @docstring))

(expression_statement . (ellipsis) .) @stub
(pass_statement) @stub
((raise_statement . (identifier) @_error) @stub
  (#eq? @_error "NotImplementedError"))
((raise_statement . (call function: (identifier) @_error)) @stub
  (#eq? @_error "NotImplementedError"))

; A body that is empty on purpose: somebody else writes it.
((decorated_definition
   (decorator [(identifier) @_mark (attribute attribute: (identifier) @_mark)])
   definition: (function_definition) @abstract)
  (#match? @_mark "^(abstract\\w*|overload)$"))
((class_definition
   superclasses: (argument_list
     [(identifier) @_base
      (attribute attribute: (identifier) @_base)
      (subscript value: [(identifier) @_base (attribute attribute: (identifier) @_base)])]))
  @abstract
  (#eq? @_base "Protocol"))
