"""One file per noun. Each has `main(arguments) -> exit status`; `main.py` has the list of them."""
