"""Random texts with every line end there is, what only looks like one, and characters of each width."""

from hypothesis import strategies as st

LETTERS = st.sampled_from(
    [
        "a",
        "b",
        " ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\f",
        "\v",
        "\u0085",
        "\u2028",
        "é",
        "e\u0301",
        "日",
        "😀",
        "\ufeff",
    ]
)
TEXTS = st.lists(LETTERS, max_size=40).map("".join)
