"""The sub-commands of `rowcall` that need neither API nor worker: one file each."""
