"""How far Rowcall carries: measured costs, a model, and its predictions held against real runs: `make simulate`."""
