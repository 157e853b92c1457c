"""Texts that look like code, with everything in them that counts differently somewhere."""

from hypothesis import strategies as st

_PIECES = [
    *"abx1_ \t.,:;=+-*/%!<>()[]{}\"'`#$\\\n",
    "\r\n",
    "\r",
    "\f",
    "\v",
    "\u2028",
    "\x85",
    "\ufeff",
    "é",
    "e\u0301",
    "😀",
    "👩\u200d👧",
    "🇩🇪",
    "\ud83d",
    "\x00",
    "    ",
    "def f(x):\n    ",
    "class A:\n    ",
    "pass\n",
    '"""',
    "function f(x) {\n  ",
    "}\n",
    "// TODO\n",
    "# TODO\n",
    "/* ",
    " */",
    "return x\n",
    "@a\n",
    "fn f() {\n",
    "=> ",
]

texts = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)
languages = st.sampled_from(
    ["python", "javascript", "typescriptreact", "go", "rust", "java", "c", "cpp", "plaintext"]
)
