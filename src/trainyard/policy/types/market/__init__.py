"""The matching market: which job gets how many GPUs of which types (Liu et al., TPDS'24)?

`prices` is the type-price engine, `category` the paper's own; both minimise the sum of what `costs` says.
"""
