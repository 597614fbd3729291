"""The report of what is open: files, paper, the clipboard."""
