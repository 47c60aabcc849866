"""One file a noun. Each has `main(arguments) -> exit status`; `main.py` has the list of them."""
