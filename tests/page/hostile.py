"""Text that would execute, break out of an attribute, or reverse the text beside it."""

from __future__ import annotations

SCRIPT = "<script>window.hit=1</script>"

HOSTILE = (
    SCRIPT,
    "\"'><img src=x onerror=window.hit=1>",
    "' onmouseover='window.hit=1' x='",
    "</textarea></pre></title></script><svg onload=window.hit=1>",
    "{{ 7 * 7 }}{% raw %}&lt;b&gt;&amp;",
    "\u202egpj.exe\u2066\u200f\x1b[31m\x07\r\n\tb\x7f\x85\u2028end",
    "<!--<style>*{display:none}",
)


def hostile(plain: str) -> str:
    """Return this text with all of them around it."""
    return plain + "".join(HOSTILE)
