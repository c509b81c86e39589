"""Plain text again from what word processors, chats and web pages make of a command."""

from __future__ import annotations

import re

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»″＂", '"'),
        **dict.fromkeys("‘’‚‛′＇", "'"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", None),
        "\u2028": "\n",
        "…": "...",
        "＝": "=",
    }
)
_DASH = "‐‑‒–—―−﹣－"
_RUN_AT_WORD_START = re.compile(
    rf"(?<![^\s'\"\[(,=])[{_DASH}-]*[{_DASH}][{_DASH}-]*(?=([A-Za-z][\w.-]*))"
)
_ANY = re.compile(f"[{_DASH}]")
_SHORT = frozenset({"tp", "pp", "dp", "it", "ti", "dit", "itd", "lc", "dcp", "pcp"})
"""Options of more than one letter that have one dash all the same."""
_FENCE = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)^[ \t]*(?:```|~~~)[ \t]*$", re.DOTALL | re.MULTILINE
)
_PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.-]+@[\w.-]+[^\n$#%]*[$#%]|[$%>])[ \t]+(?=\S)"
    r"(?![^\s-]\S*(?:\.log|\.out|\.txt|/dev/null)?[ \t]*(?:2>&1|&[ \t]*$|<[ \t]*/dev/null))",
    re.MULTILINE,
)
"""Of a shell. ``>`` at the head of a line is the prompt of a continued line, unless a file follows
to which the output goes."""
_POWERSHELL_ENV = re.compile(r"^[ \t]*\$env:(\w+)[ \t]*=[ \t]*", re.MULTILINE | re.IGNORECASE)
_POWERSHELL_VALUE = re.compile(r"\$env:(\w+)|\$\{env:(\w+)\}", re.IGNORECASE)
_BATCH = re.compile(
    r"^[ \t]*(?:@echo off|rem[ \t]|setlocal|::)|%[A-Za-z_]\w*%", re.MULTILINE | re.IGNORECASE
)
_BATCH_REMARK = re.compile(r"^[ \t]*@?(?:rem\b|::)[^\n]*$", re.MULTILINE | re.IGNORECASE)
_BATCH_SET = re.compile(
    r"^[ \t]*@?set[ \t]+\"?([A-Za-z_]\w*)=([^\n\"]*)\"?[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_BATCH_VALUE = re.compile(r"%([A-Za-z_]\w*)%")
_FOREIGN_PATH = re.compile(r"(?<!\\)\\(?=[A-Za-z0-9._])")
_QUOTED_JSON = re.compile(r"'(\{[^'\n]*\})'")
_LOST_DASH = re.compile(rf"(?<=\s)[{_DASH}][ \t]+(?=[a-z]+(?:[-_][a-z0-9]+)+\b)")
_FOREIGN_CONTINUATION = re.compile(r"[ \t][`^][ \t]*\n")


def plain(text: str) -> str:
    """Quotes, dashes, spaces and line ends as a shell knows them; without fences and prompts."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_QUOTES)
    blocks = [
        block for block in _FENCE.findall(text) if "vllm" in block.lower() or "--model" in block
    ]
    if blocks:
        text = "\n".join(blocks)
    text = _LOST_DASH.sub("--", text)
    text = _RUN_AT_WORD_START.sub(lambda run: "-" if _is_short(run[1]) else "--", text)
    text = _ANY.sub("-", text)
    text = _PROMPT.sub("", text)
    return _of_windows(text)


def _of_windows(text: str) -> str:
    """PowerShell's and cmd's own ways of writing, as a shell has them."""
    is_batch = _BATCH.search(text) is not None
    if not is_batch and _FOREIGN_CONTINUATION.search(text) is None:
        return _POWERSHELL_VALUE.sub(_braced, _POWERSHELL_ENV.sub(r"export \1=", text))
    text = _QUOTED_JSON.sub(lambda json: json[0].replace('\\"', '"'), text)
    text = _FOREIGN_PATH.sub(r"\\\\", text)
    if is_batch:
        text = _BATCH_SET.sub(r'export \1="\2"', _BATCH_REMARK.sub("", text))
        text = _BATCH_VALUE.sub(r"${\1}", text)
    text = _POWERSHELL_VALUE.sub(_braced, _POWERSHELL_ENV.sub(r"export \1=", text))
    return _FOREIGN_CONTINUATION.sub(" \\\n", text)


def _braced(reference: re.Match[str]) -> str:
    return f"${{{reference[1] or reference[2]}}}"


def _is_short(word: str) -> bool:
    return len(word) == 1 or word in _SHORT
