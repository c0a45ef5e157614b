"""The local web page ``trueup explore``: a formula in, the estimator, its curves and code out.

::

    serve        the command's work: address, warning, uvicorn
    app          routes, and what each one answers
    connections  those of which nothing comes are closed
    guard        Host and Origin, headers, the size and pace of a body
    allowances   every limit of what may be asked
    families     what there is to choose from: noise families with their fields, SQL dialects
    refused      a refusal, beside the field that it is about
    pool         worker processes: every computation bounded in time and memory, cancellable
    worker       what runs in one: requests from a pipe, answers into it
    views        what a worker computes: one module for each view
    uploads      files in a temporary folder, their debiasing, their removal
    static/      the page itself: no build step, nothing from the network

The server's process imports neither NumPy nor sympy: it stays small, and a formula is only ever
read inside a worker.
"""
