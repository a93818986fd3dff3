"""The live view of `rowcall up` on a terminal.  Only this folder imports rich."""
