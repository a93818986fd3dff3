"""The commands of `rowcall`, except those of the API, the worker and the migrations."""
